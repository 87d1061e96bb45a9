"""The comparison of a compiled function with its eager calls: results, gradients, writes, and what the graph serves.

Each form of a call is compiled with ``fullgraph=True`` and called three times (:data:`TURNS`), the second time on other
values, with new tensors and the same seed each time. Where no graph can repeat a call, the break is recorded with its
reason, and the function is compared again in segments.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
import torch
from candelabra.graph import GraphBreak
from candelabra_conformance.properties.compiling import near
from oracle_peer import each, leaves, translate
from oracle_values import attempt, words

TURNS: Final = ("that is traced", "that runs the graph on other values", "that runs the graph again")
SCALE: Final = 0.875
"""The factor of the other values. It keeps numbers in most domains, and matrices positive definite."""
Call = Callable[[Any, Any], Any]
"""A function of positional arguments and keyword arguments."""


class Form(NamedTuple):
    """One form of a call."""

    call: Call
    """What is compiled."""
    surrounded: Callable[[Call], Call] = lambda call: call
    """From the function, eager or compiled, to the one whose results are compared."""


class Broken(Exception):
    """A graph break of a function that is compiled with ``fullgraph=True``; the text is the reason."""


@dataclass
class Verdict:
    """The result for one operator, module or optimizer."""

    name: str
    samples: int = 0
    """The samples that the eager function accepts."""
    calls: int = 0
    """The compiled calls that were compared."""
    same_bits: int = 0
    """Those among them whose results have the bits of the eager call."""
    breaks: dict[str, int] = field(default_factory=dict)
    """By reason: the number of samples that no graph can repeat."""
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0
    determined: bool = True
    """Whether values are determined by the arguments and the seed."""
    counted: dict[str, int] = field(default_factory=dict)
    """By reason: the last sample that was counted among the breaks, of which several forms may break."""

    def breaks_for(self, reason: str) -> None:
        """Count a break of the current sample, once for each reason."""
        if self.counted.get(reason) != self.samples:
            self.counted[reason] = self.samples
            self.breaks[reason] = self.breaks.get(reason, 0) + 1

    def compared(self, got: Any, due: Any) -> str | None:
        """Count a compiled call, and return how its results differ from those of the eager call."""
        found = differs(got, due, self.determined)
        self.calls += 1
        self.same_bits += found is None and same_bits(got, due)
        return found

    @property
    def status(self) -> str:
        """``differs``, ``breaks``, ``agrees``, or ``none`` if there is no sample."""
        if self.differences:
            return "differs"
        return "breaks" if self.breaks else "agrees" if self.samples else "none"


def scaled(value: Any) -> Any:
    """Return PyTorch's arguments with the numbers of their memory scaled, in the same layout.

    A tensor that occurs twice does so in the result.
    """
    results: dict[int, torch.Tensor] = {}

    def other(t: torch.Tensor) -> torch.Tensor:
        plain = t.detach().resolve_conj().resolve_neg()
        if id(t) in results or not (plain.is_floating_point() or plain.is_complex()) or not plain.numel():
            return results.setdefault(id(t), t)
        memory = torch.tensor([], dtype=plain.dtype).set_(plain.untyped_storage()) * SCALE
        results[id(t)] = memory.as_strided(plain.shape, plain.stride(), plain.storage_offset())
        return results[id(t)].requires_grad_(t.requires_grad)

    return each(value, other)


def with_own_modules(value: Any) -> Any:
    """Return PyTorch's arguments with its modules translated: a compiled function takes another module for another
    kind of call."""
    if isinstance(value, torch.nn.Module):
        return translate(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(map(with_own_modules, value))
    return {k: with_own_modules(v) for k, v in value.items()} if isinstance(value, dict) else value


def compare(
    make: Callable[[], Form], arguments: Any, verdict: Verdict, convert: Callable[[Any], Any] = translate
) -> Iterator[str]:
    """Compare the compiled form of a call with the eager one. Yield the differences.

    ``make`` returns the form with a state of its own. ``arguments``: PyTorch's, positional and by keyword, for
    ``convert``.
    """
    arguments = with_own_modules(arguments)
    calls = [arguments, scaled(arguments), arguments]
    call, surrounded = make()
    eager = surrounded(call)
    expected = [attempt(lambda: run(eager, convert, each_call)) for each_call in calls]  # noqa: B023
    if expected[0][1] is not None:
        return

    def compiled_differs(**options: Any) -> Iterator[str]:
        call, surrounded = make()
        compiled = cd.compile(call, **options)
        found = list(turns_differ(lambda turn: run(surrounded(compiled), convert, turn), calls, expected, verdict))
        yield from found
        if not found and options and len(compiled.programs) != 1:
            yield f"{len(compiled.programs)} programs after calls of one kind"

    try:
        yield from compiled_differs(fullgraph=True)
    except Broken as broken:
        verdict.breaks_for(str(broken))
        yield from (f"in segments: {difference}" for difference in compiled_differs())


def turns_differ(call: Callable[[Any], Any], calls: list[Any], expected: list[Any], verdict: Verdict) -> Iterator[str]:
    """Yield the first difference of the calls of a compiled function. ``expected``: eager results, or errors."""
    for turn, arguments, (due, refusal) in zip(TURNS, calls, expected, strict=True):
        got, error = attempt(lambda: call(arguments))  # noqa: B023
        if is_break(error):
            raise Broken(reason_of(error))
        if refusal is not None:
            if type(error) is not type(refusal):
                yield f"in the call {turn}: {words(error) if error else 'no error'}; eager: {words(refusal)}"
            return
        found = words(error) if error is not None else verdict.compared(got, due)
        if found is not None:
            yield f"in the call {turn}: {found}"
            return


def is_break(error: Exception | None) -> bool:
    """Return whether an error says that no graph can repeat a call."""
    return isinstance(error, GraphBreak) or "fullgraph=True" in str(error)


def reason_of(error: Exception | None) -> str:
    """Return why a graph breaks, without the names of functions and the user's line."""
    text = " ".join(str(error).split())
    return (text.partition("fullgraph=True): ")[2] or text).partition(", at ")[0]


def run(call: Call, convert: Callable[[Any], Any], arguments: Any) -> Any:
    """Call a function on new tensors after a seed. Return what it returns, and the arguments as the call left them."""
    args, kwargs = convert(arguments)
    cd.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = call(args, kwargs)
    return out, [t.detach() for t in leaves((args, kwargs), cd.Tensor)]


# -- forms of a call ---------------------------------------------------------------------------------------------------
def weighted_gradients(outputs: Any, inputs: list[cd.Tensor]) -> tuple[Any, ...]:
    """Return the gradients of a weighted sum of the outputs, in C order: no eager call promises their layout."""
    outs = [t for t in leaves(outputs, cd.Tensor) if t.requires_grad]
    if not outs:
        return ()
    found = cd.autograd.grad(outs, inputs, [_weights(t) for t in outs], allow_unused=True)
    return tuple(None if g is None else g.contiguous() for g in found)


def _weights(t: cd.Tensor) -> cd.Tensor:
    values = (cd.arange(t.numel(), dtype=cd.float64).cos() + 0.25).reshape(t.shape)
    return cd.complex(values, values.sin()).to(t.dtype) if t.is_complex() else values.to(t.dtype)


def each_detached(value: Any) -> Any:
    """Return all tensors of a nest, detached, as a list."""
    return [t.detach() for t in leaves(value, cd.Tensor)]


def differentiated(call: Call, parameters: Sequence[cd.Tensor] = ()) -> Call:
    """Return the function of the results and of the gradients. The call itself may be a compiled one."""

    def step(args: Any, kwargs: Any) -> Any:
        out = call(args, kwargs)
        sources = {id(t): t for t in [*leaves((args, kwargs), cd.Tensor), *parameters] if t.requires_grad}
        inputs = list(sources.values())
        return each_detached(out), weighted_gradients(out, inputs)

    return step


# -- values ------------------------------------------------------------------------------------------------------------
def differs(got: Any, due: Any, determined: bool) -> str | None:
    """Return how the results of a compiled call differ from those of the eager call, or None."""
    ours, theirs = list(all_leaves(got)), list(all_leaves(due))
    if [type(a) for a in ours] != [type(b) for b in theirs]:
        return f"gives {[type(a).__name__ for a in ours]}, eager {[type(b).__name__ for b in theirs]}"
    for a, b in zip(ours, theirs, strict=True):
        if not isinstance(a, cd.Tensor):
            if not (a == b or (a != a and b != b)) and determined:
                return f"gives {a!r}, eager {b!r}"
            continue
        for what in ("dtype", "shape", "device", "requires_grad"):
            if getattr(a, what) != getattr(b, what):
                return f"{what} {getattr(a, what)}, eager {getattr(b, what)}"
        if a.numel() and strides(a) != strides(b):
            return f"strides {a.stride()}, eager {b.stride()}"
        if determined and not near(array(a), array(b)):
            worst = float(np.nanmax(np.abs(array(a).astype(complex) - array(b))))
            return f"values differ by up to {worst:.3g}: {str(array(a))[:60]}, eager {str(array(b))[:60]}"
    return None


def strides(t: cd.Tensor) -> list[int]:
    """Return the strides of dims with several elements; the others have no meaning."""
    return [step for step, size in zip(t.stride(), t.shape, strict=True) if size > 1]


def same_bits(got: Any, due: Any) -> bool:
    """Return whether all tensors of two results have the same bits; any NaN equals any other."""
    pairs = zip(leaves(got, cd.Tensor), leaves(due, cd.Tensor), strict=True)
    return all(np.array_equal(array(a), array(b), equal_nan=a.is_floating_point()) for a, b in pairs)


def array(t: cd.Tensor) -> np.ndarray:
    """Return the values of a tensor."""
    plain = t.detach()
    return np.asarray((plain.float() if plain.dtype is cd.bfloat16 else plain).cpu().numpy())


def all_leaves(value: Any) -> Iterator[Any]:
    """Yield the leaves of a nest of containers, whatever they are."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from all_leaves(part)
    else:
        yield value


def totals(verdicts: list[Verdict]) -> Counter[str]:
    """Return the number of verdicts of each status."""
    return Counter(v.status for v in verdicts)
