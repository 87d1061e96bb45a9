"""Explain dispatch step by step, with the same function that dispatches.

:func:`explain` takes a call and does not run it. :func:`explain_key` takes an operator, a device and a dtype, for the
command ``candelabra explain``. Both follow a call through layers and promotion to the function that serves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType

from candelabra._annotations import Any, Final
from candelabra._codegen.overloading import member_for
from candelabra._device import Instance, instances_of_key
from candelabra._dispatch.declining import reason_of
from candelabra._dispatch.key import key_of
from candelabra._dispatch.layers import Layer, layers_of_key
from candelabra._dispatch.promote import common_dtype
from candelabra._dispatch.resolve import resolution
from candelabra._keys import (
    ANOMALY,
    AUTOGRAD,
    EVERY_SIZE,
    FUNCTION_MODE,
    INFERENCE,
    KERNEL_MODES,
    LAYER_MASK,
    NO_GRAD,
    NO_OVERRIDE,
    OVERRIDE,
    OWN_KERNELS,
    PACK,
    SCALAR_BITS,
    SCALAR_FIRST,
    SCALAR_MASK,
    VIEW,
    state,
)
from candelabra._records.lookup import entry_named, public_function
from candelabra._records.overloads import OverloadSet
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._serving import settle
from candelabra.dtypes import ALL, DTYPE_MASK, dtype

STEPS: Final[tuple[tuple[str, str], ...]] = (
    ("cross-device", "tensors on two device instances: a routine that looks at the arguments"),
    ("layer", "the highest functionality layer that serves the operator"),
    ("promotion", "mixed dtypes: the core casts the operands to one"),
    ("native", "the backend's kernel, or its strides for a view"),
    ("composite", "the composite body"),
    ("fallback", "the fallback policy: the reference device, with copies both ways"),
    ("unsupported", "an error: nobody serves it"),
)
"""The steps of dispatch, numbered from 1: (route, description)."""
NUMBERS: Final = {
    **{route: i for i, (route, _) in enumerate(STEPS, 1)}, "adoption": 1, "deferred": 2, "layout": 2, "override": 2,
    "strided": 4,
}  # fmt: skip
FLAGS: Final = {
    "autograd": AUTOGRAD, "view": VIEW, "inference": INFERENCE, "no_grad": NO_GRAD, "saved-tensor hooks": PACK,
    "anomaly": ANOMALY, "own kernels": OWN_KERNELS,
    "every size": EVERY_SIZE,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One decision: the number of the step, its route, and the reason in a sentence."""

    number: int
    route: str
    reason: str

    def __str__(self) -> str:
        return f"step {self.number}, {self.route}: {self.reason}"


@dataclass(frozen=True)
class Explanation:
    """The steps that serve one call of one operator. ``route`` and ``reason`` are those of the last step."""

    operator: str
    key: tuple[str, ...]
    """The dispatch key of the call in words: functionality, scalars, dtypes, devices."""
    steps: tuple[Step, ...]
    gradient: str
    """Whether the call is recorded, and with which derivative."""
    declined: Step | None = None
    """The step that serves the calls that the kernel declines, if some step does."""
    reason_declined: str | None = None
    """Why the kernel declined its first call in this dtype, if it declined one in this process."""
    calls: tuple[Explanation, ...] = field(default=())
    """For a public callable, the operators that it called."""

    @property
    def route(self) -> str:
        return self.steps[-1].route if self.steps else "callable"

    @property
    def reason(self) -> str:
        return self.steps[-1].reason if self.steps else "calls the operators below"

    def __str__(self) -> str:
        lines = [f"{self.operator}({', '.join(self.key)})" if self.steps else f"{self.operator}: a public callable"]
        if self.steps:
            taken = {step.number: step for step in self.steps}
            for number, (route, meaning) in enumerate(STEPS, 1):
                step = taken.get(number)
                served = step is self.steps[-1]
                mark = "=>" if served else " >" if step else "  "
                lines.append(
                    f" {mark} {number}. {meaning}" if step is None else f" {mark} {number}. {step.route}: {step.reason}"
                )
                if route == "promotion" and step is not None and not served:
                    lines[-1] += ", then anew:"
            if self.declined is not None:
                lines.append(f"    calls that the kernel declines: {self.declined}")
            if self.reason_declined is not None:
                lines.append(f"    the kernel declined a call in this process: {self.reason_declined}")
            lines.append(f"    gradient: {self.gradient}")
        return "\n".join([*lines, *("  " + line for call in self.calls for line in str(call).splitlines())])


def explain(operator: Operator[..., Any] | str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Explanation:
    """Return how a call would be dispatched: the steps, the route that serves it, and whether it is recorded.

    ``operator`` is a record, its name (``"add"``, in place ``"add_"``) or a function of the namespace. An operator is
    not run. For an overload set (``max``), the result explains the operator that the arguments select. A public
    callable (``split``) is run, and ``calls`` explains the operators that it calls.

    Raises the error of the call itself if no operator accepts the arguments, and ``TypeError`` for an unknown operator.
    """
    record, inplace = _record(operator, args, kwargs)
    if record is None:
        return _callable(operator, args, kwargs)
    arguments = canonical(record.form("inplace" if inplace else "function"), args, kwargs)
    key = key_of(record, arguments) & ~(OVERRIDE | NO_OVERRIDE | FUNCTION_MODE)
    compute = common_dtype(record, arguments) if _has_tensors(arguments) else None
    return follow(record, key, inplace, compute)


def explain_key(record: Operator[..., Any], instance: Instance, d: dtype, grad: bool) -> Explanation:
    """Return how a device serves the operator on tensors of one dtype, with or without a gradient.

    Of the thread's modes, only ``own_kernels`` and ``serve_every_size`` count.
    """
    tensors = [p for p in record.schema.parameters if p.kind in ("tensor", "operand", "list", "optional")]
    key = (instance.keys_for(d) if tensors else instance.bit) | state.bits & KERNEL_MODES
    compute = record.promote(d) if tensors else None
    return follow(record, key | (AUTOGRAD if grad and tensors else 0), False, compute)


def follow(record: Operator[..., Any], key: int, inplace: bool, compute: dtype | None) -> Explanation:
    """Return the steps of a key, as :func:`~candelabra._dispatch.resolve.resolution` decides them."""
    words = names_of(key)
    devices = instances_of_key(key)
    if len(devices) == 1 and compute is not None:
        settle(devices[0], record.name + "_" * inplace, compute)
    steps: list[Step] = []
    try:
        while True:
            found = resolution(record, key, inplace)
            steps.append(Step(NUMBERS[found.route], found.route, found.reason))
            if found.route == "layer":
                key &= ~_highest(key & LAYER_MASK)
            elif found.route == "promotion" and compute is not None and len(steps) < 8:
                key = key & ~(DTYPE_MASK | SCALAR_MASK | SCALAR_FIRST) | compute.bit
                steps[-1] = Step(3, "promotion", f"operands are cast to {compute.name} first")
            else:
                break
    except Exception as error:
        steps.append(Step(7, "unsupported", f"{type(error).__name__}: {error}"))
    title = record.name + "_" * inplace
    declined = None if inplace else _after_declining(record, key, steps[-1])
    reason = _reason_declined(title, key, compute)
    return Explanation(title, words, tuple(steps), _gradient(record, key, steps[-1]), declined, reason)


def _after_declining(record: Operator[..., Any], key: int, last: Step) -> Step | None:
    """Return the step that serves the calls that a kernel declines, or None without a kernel or such a step."""
    if last.route != "native":
        return None
    try:
        found = resolution(record, key, declined=True)
    except Exception:
        return None
    return Step(NUMBERS[found.route], found.route, found.reason)


def _reason_declined(title: str, key: int, compute: dtype | None) -> str | None:
    devices = instances_of_key(key)
    return reason_of(devices[0], title, compute) if len(devices) == 1 and compute is not None else None


def names_of(key: int) -> tuple[str, ...]:
    """Return a dispatch key in words."""
    words = [word for word, bit in FLAGS.items() if key & bit]
    words += [f"layer {layer.name!r}" for layer in layers_of_key(key)]
    words += [f"a Python {kind.__name__}" for kind in (bool, int, float, complex) if key & SCALAR_BITS[kind]]
    words += [d.name for d in ALL if key & d.bit]
    return tuple(words + [str(instance.device) for instance in instances_of_key(key)])


def _highest(bits: int) -> int:
    return 1 << (bits.bit_length() - 1)


def _gradient(record: Operator[..., Any], key: int, last: Step) -> str:
    if not record.differentiable and record.body is not None and record.not_differentiable is None:
        kind = "that of the operators in its body"
    elif record.not_differentiable is not None:
        return f"none: {record.not_differentiable}"
    elif not record.differentiable:
        return "none is declared"
    else:
        kind = "its own"
    if last.route in ("cross-device", "unsupported"):
        return kind
    if not key & AUTOGRAD:
        return f"{kind}; not recorded: no argument requires grad"
    return f"{kind}; not recorded: grad mode is off" if key & NO_GRAD else f"{kind}; recorded"


# -- from a call to its key -------------------------------------------------------------------------------------------
def _record(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Operator[..., Any] | None, bool]:
    """Return (the record that serves a call, whether in its in-place form); the record is None for a callable."""
    if isinstance(operator, Operator):
        return operator, False
    name = operator if isinstance(operator, str) else getattr(operator, "__name__", "")
    for known, inplace in ((name, False), (name[:-1] if name.endswith("_") else "", True)):
        form = ("function", "inplace")[inplace]
        public, record = entry_named(known), OPERATORS.get(known)
        for entry in (public if isinstance(public, OverloadSet) else None, record, public):
            if entry is None or not (isinstance(operator, str) or operator is entry.form(form)):
                continue
            if isinstance(entry, OverloadSet):
                entry = member_for(entry, args, kwargs)
            if isinstance(entry, Operator):
                return entry, inplace
    if isinstance(operator, str):
        if public_function(operator) is None:
            raise TypeError(f"explain(): there is no operator {operator!r}")
    elif not callable(operator):
        raise TypeError(f"explain() expects an operator, its name or a function, got {operator!r}")
    return None, False


class _Caught(dict[int, Any]):
    """A replacement for a dispatch table that keeps the arguments of the call."""

    def __missing__(self, key: int) -> Callable[..., Any]:
        return lambda *args: args


def canonical(entry: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the canonical, positional arguments that an entry computes, by running it on a :class:`_Caught`."""
    assert isinstance(entry, FunctionType)
    twin = FunctionType(entry.__code__, {**entry.__globals__, "table": _Caught()}, entry.__name__, entry.__defaults__)
    twin.__kwdefaults__ = entry.__kwdefaults__
    caught: tuple[Any, ...] = twin(*args, **kwargs)
    return caught


def _has_tensors(args: tuple[Any, ...]) -> bool:
    return any(hasattr(a, "_payload") or (isinstance(a, tuple) and _has_tensors(a)) for a in args)


def _callable(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Run a public callable under a layer that explains each operator that it calls."""
    calls: list[Explanation] = []

    def record_call(op: Operator[..., Any], next: Callable[..., Any], *arguments: Any) -> Any:
        compute = common_dtype(op, arguments) if _has_tensors(arguments) else None
        calls.append(follow(op, key_of(op, arguments), False, compute))
        return next(*arguments)

    if isinstance(operator, str):
        operator = public_function(operator)
    layer = Layer("explain", record_call)
    try:
        with layer:
            operator(*args, **kwargs)
    finally:
        layer.remove()
    return Explanation(operator.__name__, (), (), "that of the operators below", calls=tuple(calls))
