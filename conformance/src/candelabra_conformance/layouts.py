"""Memory layouts: the same values, lying in memory in different ways.

Each layout is made of views on the device, of a tensor that holds more than the values: what lies around them is a
guard that nobody may write to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra import Tensor

from candelabra_conformance.records import Record, arguments_of, takes_tensors
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.transport import Array, to_device

CONTIGUOUS, TRANSPOSED, OFFSET, STEP, BROADCAST, ALIASED = (
    "contiguous",
    "transposed",
    "offset",
    "step",
    "broadcast",
    "aliased",
)
GUARD: Final = 3
"""Elements around an offset slice. Their value is 1, which any operator takes."""


def _contiguous(array: Array, device: Any) -> Tensor:
    return to_device(array, device)


def _transposed(array: Array, device: Any) -> Tensor:
    """The first and the last dimension are the other way round in memory."""
    return to_device(np.ascontiguousarray(array.swapaxes(0, -1)), device).transpose(0, -1)


def _offset(array: Array, device: Any) -> Tensor:
    """A slice of a longer first dimension: contiguous, but it starts later and ends before its storage does."""
    base = np.ones((array.shape[0] + 2 * GUARD, *array.shape[1:]), array.dtype)
    base[GUARD:-GUARD] = array
    return to_device(base, device)[GUARD:-GUARD]


def _step(array: Array, device: Any) -> Tensor:
    """Every second element of a last dimension of twice the length."""
    base = np.ones((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    base[..., 1::2] = array
    return to_device(base, device)[..., 1::2]


def _broadcast(array: Array, device: Any) -> Tensor:
    """One row that the first dimension repeats with stride 0; an array whose rows differ is contiguous."""
    if array.tobytes() != repeated(array).tobytes():
        return to_device(array, device)
    return to_device(array[:1], device).expand(array.shape)


PLACE: Final[dict[str, Callable[[Array, Any], Tensor]]] = {
    CONTIGUOUS: _contiguous,
    TRANSPOSED: _transposed,
    OFFSET: _offset,
    STEP: _step,
    BROADCAST: _broadcast,
    ALIASED: _contiguous,
}
MEMORY: Final = tuple(PLACE)
"""All layouts of memory, the plain one first."""


def place(array: Array, layout: str, device: Any) -> Tensor:
    """The array on the device, laid out so.

    It is contiguous where it has too few dimensions for the layout, and for kinds of samples that are no layout.
    """
    least = {TRANSPOSED: 2, OFFSET: 1, STEP: 1, BROADCAST: 1}.get(layout, 0)
    if array.ndim < least or (layout == BROADCAST and array.shape[0] == 0):
        return to_device(array, device)
    return PLACE.get(layout, _contiguous)(array, device)


def fitted(op: Record, found: Sample, layout: str) -> Sample | None:
    """The sample with the values that a layout can hold; None where the layout is nothing new for it.

    ``broadcast`` repeats the first row of an array that has more dimensions than belong together; ``aliased`` gives
    one array for all operands of equal shape and dtype, which :func:`placed` makes one tensor.
    """
    if found.layouts and layout not in found.layouts:
        return None
    every = list(arrays((found.args, dict(found.kwargs))))
    if layout == TRANSPOSED:
        return found if any(a.ndim > 1 for a in every) else None
    if layout in (OFFSET, STEP):
        return found if any(a.ndim for a in every) else None
    if layout == BROADCAST:
        able = [a for a in every if a.ndim > found.core and a.shape[0] > 1 and a.dtype.kind in "fcV"]
        # One of them, now this and now that: so that it meets rows that differ.
        able = able[sum(a.size for a in every) % len(able) :][:1] if able else []
        return _replaced(found, lambda a: repeated(a) if _among(a, able) else a) if able else None
    if layout == ALIASED:
        # The last of them: what stands there may be a divisor, and is never 0.
        chosen = next(reversed(_operands(op, found)), None)
        twins = [a for a in _operands(op, found) if chosen is not None and _alike(a, chosen)]
        if chosen is None or len(twins) < 2 or found.core:
            return None
        return _replaced(found, lambda a: chosen if _among(a, twins) else a)
    return found


def _operands(op: Record, found: Sample) -> list[Array]:
    """The arrays of the parameters that are computed with: no indices, no masks."""
    given = arguments_of(op, found)
    return [a for p in op.schema.parameters if takes_tensors(op, p) for a in arrays(given.get(p.name))]


def _alike(a: Array, b: Array) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _among(array: Array, chosen: list[Array]) -> bool:
    return any(array is one for one in chosen)


def repeated(array: Array) -> Array:
    """The first row in place of every row."""
    return np.broadcast_to(array[:1], array.shape)


def placed(value: Any, layout: str, device: Any) -> Any:
    """Arguments with every array placed on the device; the same array twice is the same tensor twice."""
    made: dict[int, Tensor] = {}

    def one(array: Array) -> Tensor:
        if id(array) not in made:
            made[id(array)] = place(array, layout, device)
        return made[id(array)]

    return mapped(value, one)


def _replaced(found: Sample, function: Callable[[Array], Array]) -> Sample:
    return replace(found, args=mapped(found.args, function), kwargs=mapped(dict(found.kwargs), function))
