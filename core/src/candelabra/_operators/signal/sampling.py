"""What all windows share: checked arguments, the windows of no and one point, and evenly spaced points."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype
from candelabra._device import open_device
from candelabra._operators.creation import filled, ranges
from candelabra._records.record import OPERATORS
from candelabra.dtypes import dtype as dtype_type
from candelabra.dtypes import get_default_dtype

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def kind_of_window(dtype: Any) -> dtype_type:
    """The dtype that was asked for, or the default one."""
    return get_default_dtype() if dtype is None else as_dtype(dtype)


def trivial(name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> Tensor | None:
    """The window of at most one point, or None for longer ones. ``ValueError`` for arguments that no window takes."""
    from candelabra._layout import strided

    if not hasattr(M, "__index__"):
        raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = kind_of_window(dtype)
    if kind.name not in ("float32", "float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    if M > 1:
        return None
    made: Tensor = filled.full((M,), 1, dtype=kind, device=open_device(device))
    return made.requires_grad_() if requires_grad else made


def sampled(first: float, step: float, M: int, dtype: Any, device: Any) -> Tensor:
    """``first``, ``first + step``, … : ``M`` points."""
    last = first + step * (M - 1)
    made: Tensor = ranges.linspace(first, last, M, dtype=kind_of_window(dtype), device=open_device(device))
    return made


def length(M: int, sym: bool) -> int:
    """The distance between the two ends of the full period; a window that is not symmetric leaves the last one out."""
    return M - 1 if sym or M <= 1 else M


def cosines(weights: Sequence[float], M: int, sym: bool, dtype: Any, device: Any) -> Tensor:
    """``sum over i of (-1)**i * weights[i] * cos(2 pi i n / length)``."""
    angle = sampled(0.0, 2 * pi / length(M, sym), M, dtype, device)
    if len(weights) == 1:
        return angle * 0 + weights[0]
    window = angle.cos() * -weights[1] + weights[0]
    for i, w in enumerate(weights[2:], 2):
        window = window + (angle * i).cos() * (w if i % 2 == 0 else -w)
    return window


def triangle(M: int, sym: bool, dtype: Any, device: Any) -> Tensor:
    """``1 - abs(2 n / length - 1)``."""
    return 1 - sampled(-1.0, 2 / length(M, sym), M, dtype, device).abs()


def bessel(beta: float, M: int, sym: bool, dtype: Any, device: Any) -> Tensor:
    """``i0(beta * sqrt(1 - (2 n / length - 1)**2)) / i0(beta)``."""
    x = sampled(-beta, 2 * beta / length(M, sym), M, dtype, device).clamp(-beta, beta)
    i0 = OPERATORS["i0"]
    made: Tensor = i0((beta * beta - x * x).sqrt()) / i0(x[:1] * 0 + beta)
    return made
