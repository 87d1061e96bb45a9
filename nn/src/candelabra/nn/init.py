"""Initialize parameters in place: constant, random, or scaled by the numbers of a layer's inputs and outputs.

Sources: Glorot & Bengio, AISTATS 2010 (xavier); He et al., ICCV 2015 (kaiming); Saxe et al., ICLR 2014 (orthogonal).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from candelabra import no_grad
from candelabra.library import record

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip

_GAINS = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the recommended gain of a nonlinearity; ``param`` is the slope of leaky_relu, by default 0.01.

    Raises ``ValueError`` for an unknown nonlinearity or a slope that is not a number.
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with draws from U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with draws from N(mean, std²)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill with draws from N(mean, std²) limited to [a, b].

    Method: u uniform on [2Φ(α) - 1, 2Φ(β) - 1], then √2·erfinv(u), the inverse of the distribution function. It is
    computed by bisection, which needs erf only.
    """
    from candelabra import full_like

    where = record("where")

    low, high = math.erf((a - mean) / std / math.sqrt(2.0)), math.erf((b - mean) / std / math.sqrt(2.0))
    with no_grad():
        tensor.uniform_(low, high, generator=generator)
        below, above = full_like(tensor, (a - mean) / std), full_like(tensor, (b - mean) / std)
        for _ in range(40):
            middle: Any = (below + above) / 2
            less = (middle / math.sqrt(2.0)).erf() < tensor
            below, above = where(less, middle, below), where(less, above, middle)
        return tensor.copy_((below + above) / 2 * std + mean).clamp_(min=a, max=b)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity."""
    from candelabra import eye

    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill the weight of a convolution with the identity of each channel."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _fans(tensor: Any) -> tuple[int, int]:
    """Return fan_in, the number of inputs of each output, and fan_out, the number of outputs of each input."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill from U(-a, a), a = gain · sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _fans(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill from N(0, gain² · 2 / (fan_in + fan_out))."""
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: Any) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill from U(-b, b), b = gain · sqrt(3 / fan); ``a``: the slope of leaky_relu."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill from N(0, gain² / fan); ``a``: the slope of leaky_relu."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with orthonormal rows or columns, times ``gain``. The rows are the first dim; other dims are flattened.

    Method: Gram–Schmidt, each vector against all before it, twice, on normal draws; "twice is enough" (Kahan, Parlett).
    """
    from candelabra import randn, stack

    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        draws: Any = randn(
            min(rows, columns), max(rows, columns), dtype=tensor.dtype, device=tensor.device, generator=generator
        )
        found: list[Any] = []
        for vector in draws.unbind(0):
            for _ in range(2):
                for other in found:
                    vector = vector - (vector * other).sum() * other
            found.append(vector / (vector * vector).sum().sqrt())
        matrix: Any = stack(found)
        matrix = matrix.t() if rows > columns else matrix
        return tensor.copy_((matrix * gain).reshape(tensor.shape))


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix from N(0, std²), then set the fraction ``sparsity`` of each column to 0."""
    from candelabra import randperm

    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen: Any = randperm(rows, device=tensor.device)
            tensor[chosen[:zeros], column] = 0
    return tensor


def __dir__() -> list[str]:
    return sorted(__all__)
