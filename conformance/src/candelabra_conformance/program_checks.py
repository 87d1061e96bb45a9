"""Write the check of a program, by property, in plain Python.

The device executes only the call itself and the copies of results to the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra import Tensor

from candelabra_conformance import literals
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.program import ReproducerProgram
from candelabra_conformance.records import Record
from candelabra_conformance.tolerance import eps, tiny, wide
from candelabra_conformance.transport import Array

FLAT: Final = (
    "def flat(v):",
    "    return [e for part in v for e in flat(part)] if isinstance(v, list) else [v]",
)


@dataclass(frozen=True)
class Written:
    """The input of a function that writes a check."""

    record: Record
    call: str
    arguments: list[str]
    program: ReproducerProgram
    expected: Any
    allowed: Any


def _value(w: Written) -> list[str]:
    return [f"got = {w.call}", *compared(w)]


def compared(w: Written, got: str = "got") -> list[str]:
    """Return lines that compare the result with literals in plain Python, without operators of the device."""
    wants = w.expected if isinstance(w.expected, (tuple, list)) else (w.expected,)
    alloweds = w.allowed if isinstance(w.allowed, (tuple, list)) else (w.allowed,) * len(wants)
    lines = list(FLAT)
    for i, (want, allowed) in enumerate(zip(wants, alloweds, strict=True)):
        array = np.asarray(want)
        limit = _limit(array, allowed)
        lines += [
            f"result = {got}[{i}]" if len(wants) > 1 else f"result = {got}",
            f"want = {literals.flat_list(array)}",
            f"allowed = {limit}",
            f"assert tuple(result.shape) == {tuple(array.shape)}, tuple(result.shape)",
            "for i, (g, w, a) in enumerate(zip(flat(result.tolist()), want, allowed)):",
            "    if not (g == w or (g != g and w != w) or abs(g - w) <= a):",
            '        print(f"element {i}: got {g}, expected {w}, difference {abs(g - w)}, allowed {a}")',
            '        raise AssertionError("wrong value")',
        ]
    return lines


def _limit(want: Array, allowed: Any) -> str:
    if allowed is None:
        allowed = allowance(want)
    limits = np.broadcast_to(np.asarray(allowed, np.float64), want.shape).astype(np.float64)
    return literals.flat_list(limits) if limits.size else "[]"


def allowance(want: Array) -> Array:
    """Return the default error bound: 8 units in the last place, as a few roundings may cause."""
    d = device_dtype(want.dtype)
    with np.errstate(all="ignore"):
        size: Array = np.nan_to_num(np.abs(wide(want)).astype(np.float64), nan=0.0, posinf=0.0)
    return 8 * (eps(d) * size + tiny(d))


def _bitwise(w: Written) -> list[str]:
    wants = w.expected if isinstance(w.expected, (tuple, list)) else (w.expected,)
    return _value(Written(w.record, w.call, w.arguments, w.program, tuple(wants), 0.0))


def _result(w: Written) -> list[str]:
    pairs = w.expected if isinstance(w.expected, list) else [w.expected]
    lines = [f"got = {w.call}"]
    for i, (d, shape) in enumerate(pairs):
        lines += [
            f"result = got[{i}]" if len(pairs) > 1 else "result = got",
            f"assert result.dtype is cd.{d.name}, result.dtype",
            "held = result._instance.backend.dtype_of(result._payload)",
            'assert held is result.dtype, f"the payload holds {held}"',
            "assert isinstance(result._payload.shape, tuple), result._payload.shape",
            f"assert tuple(result.shape) == {tuple(shape)}, tuple(result.shape)",
            "assert result.device == cd.device(device), result.device",
        ]
    return lines


def _inputs(w: Written) -> list[str]:
    names = ", ".join(w.program.names.values())
    return [
        f"inputs = [x._base if x._is_view() else x for x in ({names},)]",
        "before = [str(x.tolist()) for x in inputs]",
        f"got = {w.call}",
        "after = [str(x.tolist()) for x in inputs]",
        'assert before == after, f"an input was changed: {before} became {after}"',
    ]


def _determinism(w: Written) -> list[str]:
    return [
        "def run():",
        f"    got = {w.call}",
        "    return str([g.tolist() for g in (got if isinstance(got, tuple) else (got,))])",
        "results = {run() for _ in range(20)}",
        'assert len(results) == 1, f"{len(results)} different results of one call: {sorted(results)[:2]}"',
    ]


def _aliasing(w: Written) -> list[str]:
    """Write into a result and report changes of the arguments, of other results, or of the result of another call."""
    view = w.record.view
    words = "a write into the view does not reach its source" if view else "the result shares memory"
    beside = "inputs" if view else "[*inputs, *results[1:], *again]"
    return [
        f"inputs = [{', '.join(w.program.names.values())}]",
        f"results, again = [list(g) if isinstance(g, tuple) else [g] for g in ({w.call}, {w.call})]",
        *FLAT,
        f"before = [str(x.tolist()) for x in {beside}]",
        "reached = False",
        "for value in (0, 1):",
        "    results[0].fill_(value)",
        '    assert set(flat([results[0].tolist()])) == {value}, "writing into the result does not change it"',
        f"    reached = reached or before != [str(x.tolist()) for x in {beside}]",
        f"assert reached is {view}, {words!r}",
    ]


def _raises(w: Written) -> list[str]:
    due = w.expected
    name = due.__name__ if isinstance(due, type) else type(due).__name__
    lines = [
        f"inputs = [{', '.join(w.program.names.values())}]",
        "before = [str(x.tolist()) for x in inputs]",
        "try:", f"    got = {w.call}", "    found = None", "except Exception as error:", "    found = error",
        'assert before == [str(x.tolist()) for x in inputs], "refused, but an argument was written to"',
        f'assert type(found).__name__ == {name!r}, f"expected {name}, got {{found!r}}"',
    ]  # fmt: skip
    return lines if isinstance(due, type) else [*lines, f"assert str(found) == {str(due)!r}, str(found)"]


def _threads(w: Written) -> list[str]:
    return [
        "def run(_):",
        f"    got = {w.call}",
        "    return str([g.tolist() for g in (got if isinstance(got, tuple) else (got,))])",
        "alone = run(0)",
        "with ThreadPoolExecutor(4) as pool:",
        "    others = [result for result in pool.map(run, range(100)) if result != alone]",
        'assert not others, f"{len(others)} of 100 results in 4 threads differ from {alone}: {others[0]}"',
    ]


def inplace_call(w: Written) -> str:
    """Return the source of a call of the in-place form."""
    method = f"{w.record.name}_"
    if getattr(Tensor, method, None) is w.record.form("inplace"):
        return f"{w.arguments[0]}.{method}({', '.join(w.arguments[1:])})"
    return f"OPERATORS[{w.record.name!r}].form('inplace')({', '.join(w.arguments)})"


def _inplace(w: Written) -> list[str]:
    return [f"got = {inplace_call(w)}", f"assert got is {w.arguments[0]}", *compared(w)]


def _out(w: Written) -> list[str]:
    want = w.expected[0] if isinstance(w.expected, (tuple, list)) else w.expected
    filler = np.zeros_like(np.asarray(want))
    return [f"got = {literals.tensor(filler)}", f"{w.call[:-1]}, out=got)", *compared(w)]


def _gradient(w: Written) -> list[str]:
    leaves, lines = gradient_call(w)
    return [*lines, *(["got = got[0]"] if leaves == 1 else []), *compared(w)]


def _gradient2(w: Written) -> list[str]:
    """Compare the gradients of the sums of the gradients, without those that are None."""
    lines = gradient_call(w)[1]
    lines[-1] = lines[-1].removesuffix(")") + ", create_graph=True, allow_unused=True)"
    several = isinstance(w.expected, tuple) and len(w.expected) > 1
    return [
        *lines,
        "again = [g for g in got if g is not None and g.requires_grad]",
        "twice = cd.autograd.grad([(g.real if g.is_complex() else g).sum() for g in again], leaves, allow_unused=True)",
        "got = [g for g in twice if g is not None]" + ("" if several else "[0]"),
        *compared(w),
    ]


def gradient_call(w: Written) -> tuple[int, list[str]]:
    """Return the number of leaves, and the lines that compute their gradients as the tuple ``got``."""
    leaves = [n for i, n in w.program.names.items() if _is_leaf(w, n)]
    return len(leaves), [
        f"leaves = [{', '.join(leaves)}]",
        "for leaf in leaves: leaf.requires_grad_()",
        f"out = {w.call}",
        "outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]",
        "got = cd.autograd.grad([(o.real if o.is_complex() else o).sum() for o in outs], leaves)",
    ]


def raising(property: str, w: Written) -> list[str]:
    """Return the lines of a call that raises an error, in the form that the property tests. The results are printed, so
    that an asynchronous device raises the error there at the latest."""
    if "gradient" in property:
        return [*gradient_call(w)[1], "print(got)"]
    if property == "inplace":
        return [f"print({inplace_call(w)})"]
    return [f"got = {w.call}", "print(got)"]


def _is_leaf(w: Written, name: str) -> bool:
    text = next(line for line in w.program.setup if line.startswith(f"{name} = "))
    return any(f"dtype=cd.{kind}" in text for kind in ("float", "bfloat", "complex"))


WRITERS: Final[dict[str, Callable[[Written], list[str]]]] = {
    "value": _value, "special": _value, "random": _bitwise, "result": _result, "inputs": _inputs,
    "determinism": _determinism, "threads": _threads, "errors": _raises, "unclaimed": _raises, "inplace": _inplace,
    "out": _out, "gradient": _gradient, "gradient2": _gradient2, "aliasing": _aliasing,
}  # fmt: skip
"""The function that writes the call and the check of each property."""
VALUES: Final = ("value", "special", "random", "inplace", "out")
