"""Random numbers under ``vmap``: one functionality layer, which also sees draws without a tensor.

With ``randomness="different"`` a draw takes as many numbers as all examples need from the generator of the real device,
and each example gets its own. With ``"same"`` all get the numbers of one draw. Levels of other transforms do not affect
draws.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance
from candelabra._dispatch.layers import Layer
from candelabra._dispatch.levels import active_frames
from candelabra._random import generator
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import SHAPE
from candelabra._tensor import Tensor
from candelabra._transforms.batching import VMAP, Batch
from candelabra._transforms.batching_kernels import Batched
from candelabra._transforms.level import below

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class RandomnessLayer(Layer):
    """The layer that serves the operators that draw random numbers. It is on while a ``vmap`` is active."""

    def handler_for(self, op: Operator[..., Any], inplace: bool) -> Callable[..., Any] | None:
        """Return the handler of an operator that draws."""
        return self.handler if op.random else None


def batch_of(args: tuple[Any, ...]) -> Batch | None:
    """Return the innermost ``vmap`` that a draw has not passed yet, unless an operand is of a level inside it.

    A draw inside a kernel of a level concerns the levels outside it: the mode bits of these levels are in force.
    """
    depth = max((t._instance.depth for t in args if isinstance(t, Tensor)), default=0)
    for frame in reversed(active_frames()):
        if frame.depth < _limit.depth and isinstance(frame, Batch):
            return None if depth > frame.depth else frame
    return None


class _Limit(threading.local):
    """The depth of the level whose kernel draws."""

    depth = 1 << 30


_limit: Final = _Limit()


def draw(op: Operator[..., Any], next: Callable[..., Any], *args: Any) -> Any:
    """Serve an operator that draws random numbers, for all examples."""
    frame = batch_of(args)
    if frame is None:
        return next(*args)
    if frame.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    before = _limit.depth
    _limit.depth = frame.depth
    try:
        with below(frame.instance):
            out, batched = (_different if frame.randomness == "different" else _same)(op, frame, args)
    finally:
        _limit.depth = before
    if op.schema.result is not None:
        return op.schema.result(*[frame.wrap(Batched(o, frame, batched)) for o in out])
    return frame.wrap(Batched(out, frame, batched))


def _different(op: Operator[..., Any], frame: Batch, args: tuple[Any, ...]) -> tuple[Any, bool]:
    if op.name == "random_permutation" or op.name == "random_multinomial":
        return _stacked(op, frame, args, True), True
    values: list[Any] = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if isinstance(value, Tensor):
            values.append(frame.unbatched(value))
        elif p.kind == SHAPE:
            values.append((frame.size, *value))
        else:
            values.append(_outside(value, frame))
    return op.canonical(*values), True


def _same(op: Operator[..., Any], frame: Batch, args: tuple[Any, ...]) -> tuple[Any, bool]:
    batched = [isinstance(a, Tensor) and _is_batched(a, frame) for a in args]
    if any(batched):
        return _stacked(op, frame, args, False), True
    values = [_outside(_inner(a, frame), frame) for a in args]
    return op.canonical(*values), False


def _stacked(op: Operator[..., Any], frame: Batch, args: tuple[Any, ...], different: bool) -> Any:
    """Call the operator for each example, with the same counters or with counters of its own, and stack the results."""
    results = []
    names = [p.name for p in op.schema.parameters]
    place = names.index("offset")
    used = _counters(op, args)
    for i in range(frame.size):
        values: list[Any] = []
        for a in args:
            inner = _inner(a, frame)
            values.append(inner[i] if isinstance(a, Tensor) and _is_batched(a, frame) else _outside(inner, frame))
        if different:
            values[place] += i * used
        results.append(op.canonical(*values))
    stack: Any = OPERATORS["stack"].canonical
    if op.schema.result is not None:
        return tuple([stack(tuple(column), 0) for column in zip(*results, strict=True)])
    return stack(tuple(results), 0)


def _counters(op: Operator[..., Any], args: tuple[Any, ...]) -> int:
    """Return the number of counters of one example's draw."""
    from candelabra._random.counters import counters_used

    if op.name == "random_permutation":
        return counters_used("permutation", args[0], "int64")
    if op.name == "random_multinomial":
        input, samples, replacement = args[:3]
        rows = 1 if len(input.shape) == 1 else input.shape[0]
        return counters_used("multinomial", rows * (samples if replacement else input.shape[-1]), "int64")
    return 0


def _is_batched(tensor: Tensor, frame: Batch) -> bool:
    return bool(tensor._keys & frame.instance.bit) and tensor._payload.batched


def _inner(value: Any, frame: Batch) -> Any:
    """Return the tensor of the level below, or any other value."""
    return value._fresh()._payload.tensor if isinstance(value, Tensor) and value._keys & frame.instance.bit else value


def _outside(value: Any, frame: Batch) -> Any:
    """Return the instance of the level below for that of the level itself, or any other value."""
    return frame.like._instance if value is frame.instance and isinstance(value, Instance) else value


def repeats() -> int:
    """Return the number of examples for which a draw takes numbers of their own."""
    count = 1
    for frame in active_frames():
        if isinstance(frame, Batch) and frame.randomness == "different":
            count *= frame.size
    return count


RANDOMNESS: Final = RandomnessLayer("vmap randomness", draw)
VMAP.modes = RANDOMNESS.bit
generator.repeats.append(repeats)
