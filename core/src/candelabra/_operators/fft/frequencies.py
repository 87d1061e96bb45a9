"""Which frequency each point of a spectrum has, and spectra with frequency 0 in the middle."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype
from candelabra._operators.fft.arguments import dims_and_sizes
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._records.callables import public
from candelabra._records.rules import shape_of
from candelabra.dtypes import FLOATING
from candelabra.dtypes import dtype as dtype_type

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _checked(name: str, dtype: Any) -> dtype_type | None:
    found = None if dtype is None else as_dtype(dtype)
    if found is not None and found.category < FLOATING:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    return found


def _counted(numbers: list[Tensor], n: int, d: float, requires_grad: bool) -> Tensor:
    from candelabra._operators.shapes.joining import cat

    found: Tensor = (cat(tuple(numbers), 0) if len(numbers) > 1 else numbers[0]) * (1.0 / (n * d) if n else 1.0)
    return found.requires_grad_() if requires_grad else found


@public(namespace="fft", factory=True)
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the ``n`` points of :func:`candelabra.fft.fft`, of samples ``d`` apart, in cycles per unit.

    0, 1, …, then the negative ones, -n // 2, …, -1, divided by ``n * d``.
    """
    from candelabra._operators.fronts.creation import arange

    kind = _checked("fftfreq", dtype) or _default()
    half = (n + 1) // 2
    parts = [arange(0, half, dtype=kind, device=device), arange(-(n // 2), 0, dtype=kind, device=device)]
    return _counted(parts, n, d, requires_grad)


@public(namespace="fft", factory=True)
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the n // 2 + 1 points of :func:`candelabra.fft.rfft`, of samples ``d`` apart."""
    from candelabra._operators.fronts.creation import arange

    kind = _checked("rfftfreq", dtype) or _default()
    return _counted([arange(0, n // 2 + 1, dtype=kind, device=device)], n, d, requires_grad)


def _default() -> dtype_type:
    from candelabra.dtypes import get_default_dtype

    return get_default_dtype()


def _rolled(input: Tensor, dim: Any, up: int) -> Tensor:
    dims = dims_and_sizes(input, None, dim)[0] if dim is not None else tuple(range(len(shape_of(input))))
    if not dims:
        return input
    found: Tensor = input.roll([(shape_of(input)[d] + up) // 2 for d in dims], dims)
    return found


@public(namespace="fft")
@takes_tensors("fft_fftshift")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Frequency 0 moved into the middle of ``dim`` (an int, several, or all dims)."""
    return _rolled(input, dim, 0)


@public(namespace="fft")
@takes_tensors("fft_ifftshift")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of :func:`candelabra.fft.fftshift`."""
    return _rolled(input, dim, 1)
