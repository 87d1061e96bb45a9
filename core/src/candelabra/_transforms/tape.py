"""The tape of one derivative of a function: reverse mode on the graph of a level.

The first derivative that is taken on a level uses the graph of that level. A second one inside it gets a level of its
own, whose kernels only pass calls on to the level below: then ``no_grad`` in the inner function affects the inner
derivative only, as modes belong to a level.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.api import grad as gradients_of
from candelabra._autograd.filling import zeros_like
from candelabra._dispatch.levels import active_frames, innermost, level
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, mode, state
from candelabra._records.record import OPERATORS
from candelabra._records.schema import DEVICE
from candelabra._tensor import Tensor, wrap
from candelabra._transforms.level import (
    Frame,
    Payload,
    Transform,
    below,
    frame_at,
    levelled,
    modes_of_level,
    without_ended_levels,
)
from candelabra.utils._pytree import tree_map

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class Recorded(Payload):
    """A tensor of the level below, under a graph of its own."""

    __slots__ = ()

    def __init__(self, tensor: Tensor, frame: Any) -> None:
        super().__init__(tensor, frame, tuple(tensor._payload.shape))


class Recording(Transform):
    """The device type of a nested derivative: every kernel calls the operator on the level below."""

    name = "grad"
    transparent = True

    def kernel_of(self, op: Operator[..., Any]) -> Callable[..., Any]:
        return passing(op)

    def adopted(self, frame: Any, tensor: Tensor) -> Recorded:
        return Recorded(tensor, frame)

    def copy_(self, destination: Recorded, source: Recorded) -> Recorded:
        with below(destination.frame.instance):
            destination.tensor.copy_(source.tensor)
        return destination


RECORDING: Final = Recording()


def passing(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return the kernel that calls an operator on the tensors inside the payloads."""
    run = op.canonical
    several = op.schema.result is not None
    places = [i for i, p in enumerate(op.schema.parameters) if p.kind == DEVICE]

    def kernel(*args: Any) -> Any:
        frame: Any = None
        values: list[Any] = []
        for a in args:
            if type(a) is Recorded:
                frame = a.frame
                values.append(a.tensor)
            elif type(a) is list:
                frame = next((x.frame for x in a if type(x) is Recorded), frame)
                values.append([x.tensor if type(x) is Recorded else x for x in a])
            else:
                values.append(a)
        for i in places:
            frame = frame_at(values[i]) if frame is None else frame
            values[i] = RECORDING.instance_at(values[i])
        out = run(*values)
        return tuple([Recorded(o, frame) for o in out]) if several else Recorded(out, frame)

    return kernel


class Tape:
    """The recording of one function call: the variables, and the way from its results to their gradients.

    Use it as a context manager around the call. Afterwards :meth:`gradients` may be called any number of times.
    """

    def __init__(self) -> None:
        outer = innermost()
        self.outer = outer
        self.depth = 0 if outer is None else outer.depth
        self.frame: Frame | None = None
        """The level of its own, if another derivative uses the graph of the outer level."""
        self.variables: list[Tensor] = []
        self.recorded_outside = False
        """Whether the caller records on the level of the variables, so that the gradients must have graphs, too."""
        self._bits = state.bits

    def __enter__(self) -> Tape:
        if any(tape.depth == self.depth for tape in _running.tapes):
            self.frame = Frame(RECORDING)
            self.frame.__enter__()
            self.depth = self.frame.depth
        self._mode = mode(exclude=NO_GRAD)
        self._mode.__enter__()
        _running.tapes.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _running.tapes.pop()
        self._mode.__exit__(*error)
        if self.frame is not None:
            self.frame.__exit__(*error)

    def variable(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the tape's level that requires grad, with the content of ``tensor``.

        It stays connected to the graph that the caller records on the same level.
        """
        frame = self.frame or self.outer
        if frame is not None and not tensor._keys & frame.instance.bit:
            if frame.like is None:
                frame.like = tensor
            out = frame.adopt(tensor)
        elif tensor._node is not None and not self._bits & NO_GRAD:
            self.recorded_outside = True
            out = OPERATORS["alias"].canonical(tensor)
        else:
            tensor._fresh()
            out = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
            out._counter = tensor._counter
        if out._node is None:
            out.requires_grad_()
        self.variables.append(out)
        return out

    def gradients(
        self,
        outputs: Sequence[Tensor],
        cotangents: Sequence[Tensor | None] | None,
        create_graph: bool | None = None,
        release: bool = False,
    ) -> list[Tensor]:
        """Return the gradients of the variables: zeros for those that the outputs do not depend on."""
        keep = self.keeps_graph(outputs) if create_graph is None else create_graph
        reached = [i for i, out in enumerate(outputs) if out._node is not None]
        found: list[Any] = [None] * len(self.variables)
        if reached and found:
            given = None if cotangents is None else [cotangents[i] for i in reached]
            here = len(active_frames()) == self.depth
            frame = self.frame
            ended = level(frame.instance) if frame is not None and not frame.alive else mode()
            with ended, modes_of_level(self.depth, *((0, NO_GRAD) if keep else (NO_GRAD, 0))):
                found = list(
                    gradients_of(
                        [outputs[i] for i in reached],
                        self.variables,
                        given,
                        retain_graph=keep or not release,
                        create_graph=keep and here,
                        allow_unused=True,
                    )
                )
        return [
            self.result(zeros_like(v) if g is None else g, keep) for v, g in zip(self.variables, found, strict=True)
        ]

    def keeps_graph(self, outputs: Sequence[Tensor]) -> bool:
        """Return whether the gradients must have graphs: the caller records, and a captured tensor requires grad."""
        if self.frame is not None or self._bits & NO_GRAD:
            return False
        return self.recorded_outside or _has_other_leaves(outputs, self.variables)

    def result(self, value: Any, keep: bool) -> Any:
        """Return a tensor for the caller: of the outer level, and without the tape's graph unless it is kept."""
        if not isinstance(value, Tensor):
            return value
        value = without_ended_levels(value)
        if self.frame is not None and value._keys & self.frame.instance.bit:
            inner: Tensor = value._fresh()._payload.tensor
            return inner
        instance = value._instance
        if keep or instance.depth != (0 if self.outer is None else self.outer.depth):
            return value
        return levelled(value)

    def results(self, values: Any, keep: bool) -> Any:
        """Return every tensor of a nested container for the caller."""
        return tree_map(lambda value: self.result(value, keep), values)


class _Running(threading.local):
    """The tapes that record in a thread, the outermost first."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []


_running: Final = _Running()


def _has_other_leaves(outputs: Sequence[Tensor], variables: Sequence[Tensor]) -> bool:
    """Return whether the graph of the outputs has leaves besides the variables: captured tensors that require grad."""
    own = {id(v._node) for v in variables}
    seen: set[int] = set()
    stack: list[Any] = [out._node for out in outputs]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen or id(node) in own:
            continue
        if node.is_leaf:
            return True
        seen.add(id(node))
        stack += node.edges()
    return False
