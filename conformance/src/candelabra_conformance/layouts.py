"""Memory layouts: the same values with different strides and offsets.

Each layout is a view of a larger tensor on the device. The other elements of that tensor are a guard, which no operator
may modify.
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
"""The number of elements before and after an offset slice. Their value is 1, which is valid for any operator."""


def _contiguous(array: Array, device: Any) -> Tensor:
    return to_device(array, device)


def _transposed(array: Array, device: Any) -> Tensor:
    """Return a tensor whose first and last dim are exchanged in memory."""
    return to_device(np.ascontiguousarray(array.swapaxes(0, -1)), device).transpose(0, -1)


def _offset(array: Array, device: Any) -> Tensor:
    """Return a slice of a longer first dim: contiguous, with an offset, and shorter than its storage."""
    base = np.ones((array.shape[0] + 2 * GUARD, *array.shape[1:]), array.dtype)
    base[GUARD:-GUARD] = array
    return to_device(base, device)[GUARD:-GUARD]


def _step(array: Array, device: Any) -> Tensor:
    """Return every second element of a last dim of twice the size."""
    base = np.ones((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    base[..., 1::2] = array
    return to_device(base, device)[..., 1::2]


def _broadcast(array: Array, device: Any) -> Tensor:
    """Return one row that the first dim repeats with stride 0, or a contiguous tensor if the rows differ."""
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
"""All memory layouts; the first one is contiguous."""


def to_layout(array: Array, layout: str, device: Any) -> Tensor:
    """Copy the array to the device, with a layout.

    The result is contiguous if the array has too few dims for the layout, and for kinds of samples other than layouts.
    """
    least = {TRANSPOSED: 2, OFFSET: 1, STEP: 1, BROADCAST: 1}.get(layout, 0)
    if array.ndim < least or (layout == BROADCAST and array.shape[0] == 0):
        return to_device(array, device)
    return PLACE.get(layout, _contiguous)(array, device)


def fitted(op: Record, sample: Sample, layout: str) -> Sample | None:
    """Return the sample with values that fit a layout, or None if the layout does not change the sample.

    ``broadcast`` repeats the first row of an array with more dims than the operator's core dims. ``aliased`` replaces
    all operands of equal shape and dtype by one array, which :func:`placed` converts to one tensor.
    """
    if sample.layouts and layout not in sample.layouts:
        return None
    every = list(arrays((sample.args, dict(sample.kwargs))))
    if layout == TRANSPOSED:
        return sample if any(a.ndim > 1 for a in every) else None
    if layout in (OFFSET, STEP):
        return sample if any(a.ndim for a in every) else None
    if layout == BROADCAST:
        able = [a for a in every if a.ndim > sample.core and a.shape[0] > 1 and a.dtype.kind in "fcV"]
        # One of them, in turn, so that it is combined with rows that differ.
        able = able[sum(a.size for a in every) % len(able) :][:1] if able else []
        return _replaced(sample, lambda a: repeated(a) if _among(a, able) else a) if able else None
    if layout == ALIASED:
        # The last of them: it may be a divisor, and is never 0.
        chosen = next(reversed(_operands(op, sample)), None)
        twins = [a for a in _operands(op, sample) if chosen is not None and _same_shape_and_dtype(a, chosen)]
        if chosen is None or len(twins) < 2 or sample.core:
            return None
        return _replaced(sample, lambda a: chosen if _among(a, twins) else a)
    return sample


def _operands(op: Record, sample: Sample) -> list[Array]:
    """Return the arrays of the operands, without indices and masks."""
    given = arguments_of(op, sample)
    return [a for p in op.schema.parameters if takes_tensors(op, p) for a in arrays(given.get(p.name))]


def _same_shape_and_dtype(a: Array, b: Array) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _among(array: Array, chosen: list[Array]) -> bool:
    return any(array is one for one in chosen)


def repeated(array: Array) -> Array:
    """Return the array with every row replaced by the first."""
    return np.broadcast_to(array[:1], array.shape)


def placed(value: Any, layout: str, device: Any) -> Any:
    """Copy every array in the arguments to the device. An array that occurs twice becomes one tensor."""
    made: dict[int, Tensor] = {}

    def one(array: Array) -> Tensor:
        if id(array) not in made:
            made[id(array)] = to_layout(array, layout, device)
        return made[id(array)]

    return mapped(value, one)


def _replaced(sample: Sample, function: Callable[[Array], Array]) -> Sample:
    return replace(sample, args=mapped(sample.args, function), kwargs=mapped(dict(sample.kwargs), function))
