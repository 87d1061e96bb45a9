"""The three transforms that devices implement: complex to complex, real to complex, complex to real.

``dim`` is a tuple of dims. ``norm`` is "backward" (the inverse is divided by the number of points), "ortho" (both are
divided by its square root) or "forward" (the transform is divided). All other functions of ``candelabra.fft`` call
these.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._operators.conversion.dtype_and_device import cast
from candelabra._operators.creation.filled import new_full
from candelabra._operators.shapes.joining import cat
from candelabra._records.promotion import real_part, to_complex
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]
SWAPPED: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of the adjoint. A transform of norm "backward" is not divided by anything, so its adjoint, an inverse
transform, is not divided either: that is norm "forward" of inverse transforms."""


def wide(d: dtype) -> dtype:
    """Return the dtype. Raise ``RuntimeError`` for half types, which PyTorch and other libraries do not transform
    either.
    """
    if d.is_half:
        raise RuntimeError(f"Unsupported dtype {d.title}")
    return d


def _with_last(shape: Ints, dim: Ints, size: int) -> Ints:
    return tuple(size if i == dim[-1] else s for i, s in enumerate(shape))


@operator(like_input, accepts="complex", public=False, out=False)
def fft_c2c(input: Tensor, dim: Ints, norm: str, forward: bool) -> Tensor:
    """Return the discrete Fourier transform over ``dim``, or its inverse."""
    ...


fft_c2c.vjp(input=lambda g, dim, norm, forward: fft_c2c(g, dim, SWAPPED[norm], not forward))


@by
def _spectrum_shape(input: Tensor, dim: Ints, norm: str, onesided: bool) -> Ints:
    shape = shape_of(input)
    return _with_last(shape, dim, shape[dim[-1]] // 2 + 1) if onesided else shape


@operator(_spectrum_shape, promote=wide, accepts="real floating", result=to_complex, public=False, out=False)
def fft_r2c(input: Tensor, dim: Ints, norm: str, onesided: bool) -> Tensor:
    """Return the transform of real numbers; ``onesided`` omits the redundant half of the last dim."""
    ...


@operator(
    by(lambda input, dim, norm, size: _with_last(shape_of(input), dim, size)),
    accepts="complex", result=real_part, public=False, out=False,
)  # fmt: skip
def fft_c2r(input: Tensor, dim: Ints, norm: str, size: int) -> Tensor:
    """Return the inverse transform of the half of a Hermitian spectrum, of ``size`` real points in the last dim.

    The last dim of the input has size // 2 + 1 points; the imaginary part of points that must be real is ignored.
    """
    ...


def _weighted(x: Tensor, dim: int, size: int, inner: float) -> Tensor:
    """Return the half of a spectrum of ``size`` points, with those that represent two points multiplied by ``inner``.

    These are all except the first, and the last if ``size`` is even.
    """
    count = (size - 1) // 2
    if not count:
        return x
    runs = [(1, 1.0), (count, inner)] + ([(1, 1.0)] if size % 2 == 0 else [])
    real = x.dtype.to_real()
    weights = cat(tuple(new_full(x, (n,), w, dtype=real) for n, w in runs), 0)
    return x * weights.reshape([-1 if i == dim else 1 for i in range(len(shape_of(x)))])


def _r2c_back(g: Tensor, input_spec: Any, dim: Ints, norm: str, onesided: bool) -> Tensor:
    # x is real, so its gradient is the real part of the adjoint, which half of the spectrum determines: the sum over
    # all points contains each inner point twice.
    if not onesided:
        return cast(
            fft_c2c(g, dim, SWAPPED[norm], False), dtype=input_spec.dtype
        )  # the cast discards the imaginary part
    size = input_spec.shape[dim[-1]]
    return fft_c2r(_weighted(g, dim[-1], size, 0.5), dim, SWAPPED[norm], size)


fft_r2c.vjp(input=_r2c_back)
fft_c2r.vjp(
    input=lambda g, dim, norm, size: _weighted(fft_r2c(g, dim, SWAPPED[norm], True), dim[-1], size, 2.0),
)
