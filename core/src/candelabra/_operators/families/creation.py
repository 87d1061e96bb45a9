"""New tensors: strided ones without content, scales, triangles of indices."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype, as_sizes
from candelabra._device import open_device
from candelabra._geometry import extent
from candelabra._operators.fronts.creation import empty, linspace
from candelabra._operators.primitives import creation
from candelabra._operators.shapes.memory_formats import dense_strides
from candelabra._operators.shapes.strided import as_strided
from candelabra._records.callables import public
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import (
    COMPLEX,
    FLOATING,
    INTEGER,
    PYTHON_NAMES,
    complex64,
    complex128,
    float32,
    float64,
    get_default_dtype,
    int64,
)

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Tensor


def _marked(made: Tensor, requires_grad: bool) -> Tensor:
    return made.requires_grad_() if requires_grad else made


# -- memory without content -------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of unspecified content with the given sizes and steps.

    Raises ``RuntimeError`` for as many steps as there are not sizes, and for negative ones.
    """
    shape, steps = as_sizes((size,)), as_sizes((stride,))
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    creation.given_shape(creation.full, (shape,))
    if any(step < 0 for step in steps):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    flat = empty((extent(shape, steps),), dtype=dtype, device=device)
    return _marked(as_strided(flat, shape, steps).detach(), requires_grad)


@public(method=False, factory=True)
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A dense tensor of unspecified content whose dims lie in memory in the order ``physical_layout``, outermost first.

    Raises ``RuntimeError`` where that is no order of the dims; negative ones are not counted from the end.
    """
    shape, order = as_sizes((size,)), list(physical_layout)
    if len(order) != len(shape):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for position, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {d} at index "
                f"{position})"
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    return empty_strided(shape, dense_strides(shape, order), dtype=dtype, device=device, requires_grad=requires_grad)


@public(is_function=False, factory=True)
def new_empty_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """:func:`empty_strided` with the dtype and on the device of this tensor unless given."""
    return empty_strided(
        size, stride, dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad
    )


@public(is_function=False)
def new(input: Tensor, *data: Any) -> Tensor:
    """``x.new(2, 3)``, unspecified content in that shape; ``x.new([1, 2])``, the values: dtype and device of ``x``."""
    if len(data) == 1 and not isinstance(data[0], int) and not isinstance(data[0], type(input.shape)):
        made: Tensor = input.new_tensor(data[0])
        return made
    return empty(*(data or (0,)), dtype=input.dtype, device=input.device)


# -- scales -----------------------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def range(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``start``, ``start + step``, … up to ``end``, which is included where it is met; of the default floating dtype.

    Raises ``RuntimeError`` for a step of 0, or one that leads away from ``end``.
    """
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if hasattr(v, "item") else v for v in (start, end, step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    length = int((end - start) / step + 1)
    return _marked(creation.arange(start, step, length, dtype=d, device=open_device(device)), requires_grad)


@public(method=False, factory=True)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` powers of ``base`` whose exponents are evenly spaced from ``start`` to ``end``, both included.

    ``start`` and ``end`` are numbers or 0-d tensors. Computed in float64 (complex128), then cast: floating towards the
    dtype, for integers cut off. Raises ``RuntimeError`` for a negative number of steps and for ends with dims.
    """
    for name, v in (("start", start), ("end", end)):
        if getattr(v, "ndim", 0):
            raise RuntimeError(
                "logspace only supports 0-dimensional start and end tensors, but got "
                f"{name} with {v.ndim} dimension(s)."
            )
    ends = [v.item() if hasattr(v, "item") else v for v in (start, end)]
    is_complex = any(isinstance(v, complex) for v in (*ends, base))
    if dtype is None:
        wanted = get_default_dtype().to_complex() if is_complex else get_default_dtype()
    else:
        wanted = as_dtype(dtype)
    if wanted.category == INTEGER:  # cut off first, as linspace does
        ends = [int(v) for v in ends]
    held = open_device(device).keys
    wide = float64 if float64 in held else float32  # what some devices lack
    if wanted.category == COMPLEX:
        wide = complex128 if complex128 in held else complex64
    exponents = linspace(ends[0], ends[1], steps, dtype=wide, device=device)
    return _marked((base**exponents).to(wanted), requires_grad)


# -- triangles --------------------------------------------------------------------------------------------------------
@by
def _pairs(row: int, col: int, offset: int, upper: bool, *_: object) -> tuple[int, int]:
    reach = offset if upper else offset + 1
    widths = [min(max(i + reach, 0), col) for i in builtins.range(row)]
    below = sum(widths)
    return 2, row * col - below if upper else below


@operator(_pairs, promote=unpromoted, method=False, out=False, public=False)
def triangle_indices(row: int, col: int, offset: int, upper: bool, *, dtype: DType, device: Device) -> Tensor:
    """Rows and columns of a matrix's places up to the diagonal (from it on, if ``upper``), in the order of the rows."""
    rows = creation.arange(0, 1, row, dtype=int64, device=device).reshape((row, 1))
    columns = creation.arange(0, 1, col, dtype=int64, device=device)
    inside = columns - rows >= offset if upper else columns - rows <= offset
    found: Tensor = inside.nonzero().t().contiguous().to(dtype)
    return found


triangle_indices.no_gradient("made from numbers")


def _triangle(name: str, row: int, col: int, offset: int, dtype: Any, device: Any) -> Tensor:
    for word, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{word} must be non-negative, got{size}")
    d = int64 if dtype is None else as_dtype(dtype)
    if d.category >= FLOATING or d.category < INTEGER:
        raise NotImplementedError(f"\"{name}\" not implemented for '{PYTHON_NAMES[d.name]}'")
    place = open_device(device)
    made: Tensor = triangle_indices(row, col, offset, name == "triu_indices", dtype=d, device=place)
    return made


@public(method=False, factory=True)
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The indices of a ``row`` × ``col`` matrix's lower triangle up to ``offset`` above the diagonal: shape (2, n).

    In the order of the rows. Raises ``RuntimeError`` for negative sizes, ``NotImplementedError`` for dtypes other than
    integer ones.
    """
    return _triangle("tril_indices", row, col, offset, dtype, device)


@public(method=False, factory=True)
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The indices of a matrix's upper triangle from ``offset`` above the diagonal on; see :func:`tril_indices`."""
    return _triangle("triu_indices", row, col, offset, dtype, device)
