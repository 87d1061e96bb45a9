"""Canonical arguments of the transforms: dtype, norm, dims and sizes; and the input trimmed or padded to its sizes.

All functions except the last two need shapes only, so that shape rules use them, too. ``s`` and ``dim`` are an int,
several ints, or None.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import wrap_dim
from candelabra._operators.fft.primitives import SWAPPED, wide
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import Promotion, to_float
from candelabra._records.rules import shape_of
from candelabra.dtypes import COMPLEX, dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def transformed(d: dtype) -> dtype:
    """Return the dtype in which a transform computes: integers are promoted to floats. Raise ``RuntimeError`` for half
    types.
    """
    return wide(to_float(d))


def of_reals(name: str, kind: str) -> Promotion:
    """Return the promotion of a transform of real numbers: :func:`transformed`, with an error for complex dtypes."""

    def promoted(d: dtype) -> dtype:
        if d.category == COMPLEX:
            raise RuntimeError(f"{name} expects a {kind} input tensor, but got {d.title}")
        return transformed(d)

    return promoted


def to_complex(d: dtype) -> dtype:
    """Return the dtype of a spectrum."""
    return d.to_complex()


def checked_norm(norm: str | None) -> str:
    """Return one of the three norms; None is "backward"."""
    if norm is None:
        return "backward"
    if norm not in SWAPPED:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm


def _checked_count(count: Any) -> int:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")
    return int(count)


def _wrapped(dim: int, shape: Ints) -> int:
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, len(shape))


def dims_and_sizes(shape: Ints, s: Any, dim: Any) -> tuple[Ints, Ints]:
    """Return the dims to transform and the number of points of each; -1 among several sizes keeps the size of the
    dim.
    """
    sizes = s if s is None or isinstance(s, (tuple, list)) else (s,)
    if dim is not None:
        dims = tuple([_wrapped(d, shape) for d in ((dim,) if isinstance(dim, int) else dim)])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    else:
        count = len(shape) if sizes is None else len(sizes)
        if count > len(shape):
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {len(shape)} dimensions.")
        dims = tuple(range(len(shape) - count, len(shape)))
    if sizes is None:
        sizes = [shape[d] for d in dims]
    elif sizes is s:
        sizes = [shape[d] if n == -1 else n for d, n in zip(dims, sizes)]
    return dims, tuple([_checked_count(n) for n in sizes])


def some_dims(name: str, shape: Ints, s: Any, dim: Any) -> tuple[Ints, Ints]:
    """Return :func:`dims_and_sizes` of a transform of real numbers, which needs at least one dim."""
    dims, sizes = dims_and_sizes(shape, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims, sizes


def real_dims(name: str, shape: Ints, s: Any, dim: Any) -> tuple[Ints, Ints]:
    """Return :func:`some_dims` of a transform to real numbers, whose last dim by default has an even size."""
    dims, sizes = some_dims(name, shape, s, dim)
    last = s[-1] if isinstance(s, (tuple, list)) else s
    if last is None or last == -1:
        sizes = (*sizes[:-1], _checked_count(2 * (shape[dims[-1]] - 1)))
    return dims, sizes


def with_sizes(shape: Ints, dims: Ints, sizes: Ints) -> Ints:
    """Return a shape with the sizes of some dims replaced."""
    return tuple([sizes[dims.index(d)] if d in dims else size for d, size in enumerate(shape)])


def resized(input: Tensor, dims: Ints, sizes: Ints) -> Tensor:
    """Return the input with each dim trimmed, or padded with zeros at its end, to its size."""
    for d, n in zip(dims, sizes):
        shape = shape_of(input)
        if n < shape[d]:
            input = input.narrow(d, 0, n)
        elif n > shape[d]:
            input = cat((input, input.new_zeros(with_sizes(shape, (d,), (n - shape[d],)))), d)
    return input


def as_complex(input: Tensor) -> Tensor:
    """Return the same numbers in the complex dtype."""
    return input if input.is_complex() else input.to(input.dtype.to_complex())
