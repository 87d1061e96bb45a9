"""The hooks of a trace: while a thread traces, dispatch reports every kernel that it runs.

The mode bit TRACING belongs to the key, so calls of other threads, and calls outside a trace, use other adapters, which
know nothing of it. The few places that touch payloads without a kernel test ``active`` first, as entries do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

from candelabra._annotations import TYPE_CHECKING, Any, Final, TypeVar
from candelabra._keys import DEFERRED, SCALAR_BITS, TRACING, active, mode, state

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._graph.structure import Value
    from candelabra._graph.tracing import GraphTracer
    from candelabra._records.record import Operator


F = TypeVar("F", bound=Callable[..., Any])


class RunTimeInt(int):
    """A number of a trace that differs at each run, such as a generator's offset. ``value`` is its input."""

    value: Value


class RunTimeFloat(float):
    """A number of a trace that differs at each run, such as a learning rate. ``value`` is its input.

    It goes from where it is made to a kernel, see :func:`outside_graph`. Arithmetic and comparisons would make a
    constant of it, so they break the graph.
    """

    value: Value

    __hash__ = float.__hash__


def _breaking(name: str) -> Callable[..., Any]:
    """Return a method of ``float`` that reports a break, unless it leaves the operation to the other operand."""
    plain = getattr(float, name)

    def method(self: float, *args: Any) -> Any:
        out = plain(self, *args)
        if out is not NotImplemented:
            note_break("a number that differs at each run is calculated with, or compared")
        return out

    return method


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "neg", "abs", "bool", "eq", "ne",
    "lt", "le", "gt", "ge",
):  # fmt: skip
    setattr(RunTimeFloat, f"__{_name}__", _breaking(f"__{_name}__"))

PLAIN_NUMBER: Final[dict[type, type]] = {RunTimeInt: int, RunTimeFloat: float}
"""The type of the number that a kernel takes for each."""
SCALAR_BITS.update((kind, SCALAR_BITS[plain]) for kind, plain in PLAIN_NUMBER.items())  # operands like any number


class _Current(threading.local):
    """The tracer of a thread, or None."""

    tracer: GraphTracer | None = None


current: Final = _Current()


def tracer_here() -> GraphTracer | None:
    """Return the tracer that records what this thread does now, or None."""
    return current.tracer if active and state.bits & TRACING else None


def reporting(op: Operator[..., Any], form: str, kernel: Callable[..., Any], instance: Instance) -> Callable[..., Any]:
    """Return a kernel that reports its calls to the tracer of the thread, except those that it declines."""

    def run(*args: Any) -> Any:
        tracer = current.tracer
        if tracer is None:
            return kernel(*args)
        return tracer.run(op, form, kernel, args, instance)

    return run


def introducing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a dispatch table that shows its tensors to the tracer before the call.

    Kernels see payloads only. The tracer has to know the tensors of those that the trace has not computed.
    """

    def call(*args: Any) -> Any:
        if current.tracer is not None:
            current.tracer.meet(args)
        return function(*args)

    return call


@contextmanager
def untraced() -> Iterator[None]:
    """Inside the block, this thread reports to no tracer, and runs its calls at once."""
    before, current.tracer = current.tracer, None
    try:
        with mode(exclude=TRACING | DEFERRED):
            yield
    finally:
        current.tracer = before


def is_compiling() -> bool:
    """Return whether a compiled function is being traced in this thread."""
    return tracer_here() is not None


def outside_graph(function: F, recorded: Callable[..., bool] | None = None) -> F:
    """Declare a function that compiled functions call as Python, between two graphs, at every call.

    Its tensors come from outside, such as an optimizer's parameters, and it returns None. A compiled function does not
    guard what it reads.

    ``recorded(recorder, *args, **kwargs)``, if given, may do the call as part of the graph: it asks the recorder for
    what the graph depends on (:meth:`~candelabra._compile.recording.Recorder.depends_on`) and for the numbers that each
    run computes (``numbers``), calls operators, and returns True. If it returns False, it must have done nothing.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tracer = tracer_here()
        if tracer is None:
            return function(*args, **kwargs)
        if recorded is not None and tracer.repeats and recorded(tracer, *args, **kwargs):
            return None
        return tracer.host_call(function, args, kwargs)

    call._opaque_to_compile = True  # type: ignore[attr-defined]  # it runs at every call, so nothing of it is guarded
    return call  # type: ignore[return-value]


def depends_on(holds: Callable[[], bool], name: str) -> None:
    """Let each run of a compiled function that is traced in this thread check a condition first, as a guard."""
    tracer = tracer_here()
    if tracer is not None:
        tracer.guard(holds, name)


def note_break(reason: str) -> None:
    """Report something that a graph cannot repeat to the tracer of this thread, if it has one."""
    tracer = tracer_here()
    if tracer is not None:
        tracer.note_break(reason)
