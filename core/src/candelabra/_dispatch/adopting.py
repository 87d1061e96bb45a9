"""Step 1 for function transforms: a call with tensors of several levels runs on the innermost level.

That level adopts the other tensors as constants: their own graphs are untouched, and they get their gradients.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance, instances_of_key
from candelabra._dispatch.key import map_tensors, redispatch
from candelabra._dispatch.levels import active_frames
from candelabra._records.schema import INDICES, LIST

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def innermost_of_key(key: int) -> Instance | None:
    """Return the instance of the innermost level whose bit is in a key, or None for a key without levels."""
    found = max(instances_of_key(key), key=lambda instance: (instance.depth, not _is_transparent(instance)))
    return found if found.depth else None


def _is_transparent(instance: Instance) -> bool:
    """Return whether tensors of a level may be used after its block: they act as the tensors inside them."""
    return getattr(instance.backend, "transparent", False)


def adopting(op: Operator[..., Any], inner: Instance, inplace: bool) -> Callable[..., Any]:
    """Return a function that adopts the tensors of outer levels, and dispatches the call again."""
    bit, backend = inner.bit, inner.backend
    plain = not any(p.kind in (LIST, INDICES) for p in op.schema.parameters)

    def call(*args: Any) -> Any:
        first = _first(args, bit)
        # Without a tensor of the level, the call has the level's device: a draw with probabilities from outside.
        frame: Any = active_frames()[inner.depth - 1] if first is None else backend.frame_of(first)  # type: ignore[attr-defined]
        adopt = frame.adopt
        if inplace and not args[0]._keys & bit:
            target = args[0]
            written = backend.writable(frame, target)  # type: ignore[attr-defined]
            redispatch(op, map_tensors(op, (written, *args[1:]), lambda t, _: t if t._keys & bit else adopt(t)), True)
            return target
        if plain and not inplace:
            return op.canonical(*[a if getattr(a, "_keys", bit) & bit else adopt(a) for a in args])
        return redispatch(op, map_tensors(op, args, lambda t, _: t if t._keys & bit else adopt(t)), inplace)

    return call


def _first(args: tuple[Any, ...], bit: int) -> Any:
    """Return the first tensor of the level, or None."""
    for value in args:
        if getattr(value, "_keys", 0) & bit:
            return value
        if isinstance(value, (tuple, list)):
            for item in value:
                if getattr(item, "_keys", 0) & bit:
                    return item
    return None
