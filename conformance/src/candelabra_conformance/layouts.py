"""Memory layouts: the same values with different strides and offsets.

Each layout is a view of a larger tensor on the device. The other elements of that tensor are a guard, which no operator
may modify.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra import Tensor

from candelabra_conformance.perturbation import with_arrays
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
ROWS, CHANNELS_LAST, BROADCAST_MIDDLE, BROADCAST_ALL, MIXED = (
    "rows",
    "channels-last",
    "broadcast-middle",
    "broadcast-all",
    "mixed",
)
BASIC: Final = (CONTIGUOUS, TRANSPOSED, OFFSET, STEP, BROADCAST, ALIASED)
"""The layouts of all levels."""
MEMORY: Final = (*BASIC, MIXED, ROWS, CHANNELS_LAST, BROADCAST_MIDDLE, BROADCAST_ALL)
"""All memory layouts; the first one is contiguous. Those that are not in :data:`BASIC` belong to level 3, except
``mixed``, in which the operands have different ones of them."""
REPEATING: Final = (BROADCAST, BROADCAST_MIDDLE, BROADCAST_ALL)
"""The layouts with a stride of 0, whose elements share memory and are equal."""
GUARD: Final = 3
"""The number of elements before and after an offset slice. Their value is 1, which is valid for any operator."""


class ArrayPlacement(NamedTuple):
    """How a layout stores an array: a contiguous base, and the view of it that has the array's values."""

    dims: int
    """The layout needs at least as many dims."""
    base: Callable[[Array], Array]
    view: Callable[[Any, tuple[int, ...]], Any]
    """Returns the view, given the base (a tensor, an array, or the source of a program) and the array's shape."""


def _surrounded(array: Array, dim: int, before: int, after: int) -> Array:
    """Return an array of ones that is longer in one dim and contains the array."""
    shape = list(array.shape)
    shape[dim] += before + after
    base = np.ones(shape, array.dtype)
    np.moveaxis(base, dim, 0)[before : base.shape[dim] - after] = np.moveaxis(array, dim, 0)
    return base


def _every_second(array: Array) -> Array:
    base = np.ones((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    base[..., 1::2] = array
    return base


def _channels_last(base: Any, shape: tuple[int, ...]) -> Any:
    """Return a view whose dim 1 is the last one of its memory."""
    for dim in range(1, len(shape) - 1):
        base = base.swapaxes(dim, -1)
    return base


PLACEMENTS: Final[dict[str, ArrayPlacement]] = {
    TRANSPOSED: ArrayPlacement(2, lambda a: a.swapaxes(0, -1), lambda x, _: x.swapaxes(0, -1)),
    OFFSET: ArrayPlacement(1, lambda a: _surrounded(a, 0, GUARD, GUARD), lambda x, _: x[GUARD:-GUARD]),
    STEP: ArrayPlacement(1, _every_second, lambda x, _: x[..., 1::2]),
    ROWS: ArrayPlacement(2, lambda a: _surrounded(a, -1, 1, 2), lambda x, _: x[..., 1:-2]),
    CHANNELS_LAST: ArrayPlacement(3, lambda a: np.moveaxis(a, 1, -1), _channels_last),
    BROADCAST: ArrayPlacement(1, lambda a: a[:1], lambda x, shape: x.expand(shape)),
    BROADCAST_MIDDLE: ArrayPlacement(3, lambda a: a[:, :1], lambda x, shape: x.expand(shape)),
    BROADCAST_ALL: ArrayPlacement(1, lambda a: a[(slice(1),) * a.ndim], lambda x, shape: x.expand(shape)),
}
"""The layouts other than contiguous: exchanged dims, slices of a longer dim, every second element, rows with gaps
between them, channels last, and dims that are repeated with stride 0."""
ORDERS: Final = {1: (STEP, OFFSET, CONTIGUOUS), 2: (ROWS, TRANSPOSED, STEP), 3: (CHANNELS_LAST, ROWS, TRANSPOSED, STEP)}
"""The layouts of the first, second, … operand in ``mixed``, by its dims; arrays of more dims use those of 3."""


def layout_of(array: Array, layout: str, position: int = 0) -> str:
    """Return the layout that an array gets: contiguous if it does not fit, and one by its position for ``mixed``."""
    if layout == MIXED:
        order = ORDERS.get(min(array.ndim, 3), (CONTIGUOUS,))
        layout = order[position % len(order)]
    found = PLACEMENTS.get(layout)
    if found is None or array.ndim < found.dims:
        return CONTIGUOUS
    if layout in REPEATING:
        base = found.base(array)
        if not base.size or np.broadcast_to(base, array.shape).tobytes() != array.tobytes():
            return CONTIGUOUS
    return layout


def to_layout(array: Array, layout: str, device: Any, position: int = 0) -> Tensor:
    """Copy the array to the device, with a layout.

    The result is contiguous if the array has too few dims for the layout, or differing values where the layout repeats
    them, and for kinds of samples other than layouts. ``position`` is the number of the operand, for ``mixed``.
    """
    found = PLACEMENTS.get(layout_of(array, layout, position))
    if found is None:
        return to_device(array, device)
    placed_view: Tensor = found.view(to_device(found.base(array), device), array.shape)
    return placed_view


def fitted(op: Record, sample: Sample, layout: str) -> Sample | None:
    """Return the sample with values that fit a layout, or None if the layout does not change the sample.

    The layouts of :data:`REPEATING` repeat the values of one array, in dims that are not the operator's core dims.
    ``aliased`` replaces all operands of equal shape and dtype by one array, which :func:`placed` converts to one
    tensor.
    """
    if sample.layouts and layout not in sample.layouts:
        return None
    if layout == CONTIGUOUS:
        return sample
    every = list(arrays((sample.args, dict(sample.kwargs))))
    if layout in REPEATING:
        able = [a for a in every if _repeatable(a, layout, sample.core)]
        # One of them, in turn, so that it is combined with values that differ.
        able = able[sum(a.size for a in every) % len(able) :][:1] if able else []
        return with_arrays(sample, lambda a: repeated(a, layout) if _among(a, able) else a) if able else None
    if layout == ALIASED:
        # The last of them: it may be a divisor, and is never 0.
        chosen = next(reversed(_operands(op, sample)), None)
        twins = [a for a in _operands(op, sample) if chosen is not None and _same_shape_and_dtype(a, chosen)]
        if chosen is None or len(twins) < 2 or sample.core:
            return None
        return with_arrays(sample, lambda a: chosen if _among(a, twins) else a)
    if layout == MIXED:
        return sample if sum(a.ndim for a in every) > 1 else None
    return sample if any(a.ndim >= PLACEMENTS[layout].dims for a in every) else None


def _repeatable(array: Array, layout: str, core: int) -> bool:
    """Return whether a layout of :data:`REPEATING` repeats values of an array other than along its core dims."""
    if array.dtype.kind not in "fcV" or array.ndim < PLACEMENTS[layout].dims:
        return False
    if layout == BROADCAST_ALL:
        return core == 0 and array.size > 1
    dim = int(layout == BROADCAST_MIDDLE)
    return array.ndim > core + dim and array.shape[dim] > 1


def _operands(op: Record, sample: Sample) -> list[Array]:
    """Return the arrays of the operands, without indices and masks."""
    given = arguments_of(op, sample)
    return [a for p in op.schema.parameters if takes_tensors(op, p) for a in arrays(given.get(p.name))]


def _same_shape_and_dtype(a: Array, b: Array) -> bool:
    return bool(a.shape == b.shape and a.dtype == b.dtype)


def _among(array: Array, chosen: list[Array]) -> bool:
    return any(array is one for one in chosen)


def repeated(array: Array, layout: str) -> Array:
    """Return the array with the values that a layout of :data:`REPEATING` repeats."""
    return np.broadcast_to(PLACEMENTS[layout].base(array), array.shape)


def placed(value: Any, layout: str, device: Any) -> Any:
    """Copy every array in the arguments to the device. An array that occurs twice becomes one tensor."""
    made: dict[int, Tensor] = {}

    def one(array: Array) -> Tensor:
        if id(array) not in made:
            made[id(array)] = to_layout(array, layout, device, len(made))
        return made[id(array)]

    return mapped(value, one)
