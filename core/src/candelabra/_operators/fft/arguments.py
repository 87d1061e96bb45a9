"""What the transforms are asked for, made canonical: dims, sizes, norm; and the input cut or padded to its size."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.fft.primitives import SWAPPED, wide
from candelabra._operators.primitives.creation import full
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import Promotion, to_float
from candelabra._records.rules import shape_of
from candelabra.dtypes import COMPLEX, PYTHON_NAMES, dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def checked_norm(norm: str | None) -> str:
    """One of the three norms; None is "backward"."""
    if norm is None:
        return "backward"
    if norm not in SWAPPED:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm


def transformed(d: dtype) -> dtype:
    """The promotion of a transform: integers become floats, half types are refused."""
    return wide(to_float(d))


def of_reals(name: str, kind: str) -> Promotion:
    """As :func:`transformed`, of a transform of real numbers, which complex ones are not."""

    def promoted(d: dtype) -> dtype:
        if d.category == COMPLEX:
            raise RuntimeError(f"{name} expects a {kind} input tensor, but got {PYTHON_NAMES[d.name]}")
        return transformed(d)

    return promoted


def checked_count(count: int) -> int:
    """At least one point is transformed. ``TypeError`` for what is no integer."""
    if not hasattr(count, "__index__"):
        raise TypeError(f"the number of data points must be int, not {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")
    return count


def one_dim(input: Tensor, dim: int) -> int:
    """The dim of a transform over one."""
    rank = len(shape_of(input))
    if not rank:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, rank)


def dims_and_sizes(input: Tensor, s: Any, dim: Any) -> tuple[Ints, list[int]]:
    """The dims of a transform over several, and how many points each has; -1 in ``s`` keeps a dim's size."""
    shape = shape_of(input)
    s = None if s is None else [s] if isinstance(s, int) else list(s)
    dim = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if dim is not None:
        dims = tuple(wrap_dim(d, len(shape)) if shape else one_dim(input, d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > len(shape):
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {len(shape)} dimensions.")
        dims = tuple(range(len(shape) - len(s), len(shape)))
    else:
        dims = tuple(range(len(shape)))
    sizes = [shape[d] for d in dims] if s is None else [shape[d] if n == -1 else n for d, n in zip(dims, s)]
    return dims, [checked_count(n) for n in sizes]


def resized(input: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Each dim cut, or padded with zeros at its end, to its size."""
    for d, n in zip(dims, sizes):
        have = shape_of(input)[d]
        if n < have:
            input = input.narrow(d, 0, n)
        elif n > have:
            missing = tuple(n - have if i == d else k for i, k in enumerate(shape_of(input)))
            input = cat((input, full(missing, 0, dtype=input.dtype, device=input.device)), d)
    return input


def as_complex(input: Tensor) -> Tensor:
    """The same numbers in the complex dtype."""
    return input if input.is_complex() else input.to(input.dtype.to_complex())
