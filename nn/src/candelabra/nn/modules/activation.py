"""Activation functions, elementwise or along one dim."""

from __future__ import annotations

import warnings
from typing import Any

import candelabra as cd
from candelabra.nn import functional as F
from candelabra.nn.init import constant_
from candelabra.nn.modules.attention import MultiheadAttention
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _InPlace(Module):
    """The common base of nonlinearities that may overwrite their input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    def forward(self, input: Any) -> Any:
        return F.relu(input, inplace=self.inplace)


class SELU(_InPlace):
    """The self-normalizing ELU (Klambauer et al., 2017)."""

    def forward(self, input: Any) -> Any:
        return F.selu(input, inplace=self.inplace)


class SiLU(_InPlace):
    """x · sigmoid(x)."""

    def forward(self, input: Any) -> Any:
        return F.silu(input, inplace=self.inplace)


class Mish(_InPlace):
    """x · tanh(softplus(x))."""

    def forward(self, input: Any) -> Any:
        return F.mish(input, inplace=self.inplace)


class Hardsigmoid(_InPlace):
    """relu6(x + 3) / 6."""

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, inplace=self.inplace)


class Hardswish(_InPlace):
    """x · relu6(x + 3) / 6."""

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, inplace=self.inplace)


class LeakyReLU(Module):
    """x if it is positive, ``negative_slope`` · x otherwise."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """LeakyReLU whose slopes are drawn from [lower, upper] in training, and are their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class _WithAlpha(Module):
    """The common base of ELU and CELU."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_WithAlpha):
    """x if it is positive, alpha · (exp(x) - 1) otherwise."""

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_WithAlpha):
    """x if it is positive, alpha · (exp(x / alpha) - 1) otherwise."""

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(Module):
    """x limited to [min_val, max_val]. ``min_value`` and ``max_value`` are older names of these arguments."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for older, name, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                message = f"keyword argument `{older}` is deprecated and renamed to `{name}`"
                warnings.warn(message, FutureWarning, stacklevel=2)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {self.max_val} and {self.min_val}")

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Any) -> Any:
        return F.relu6(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """x if it is above ``threshold``, ``value`` otherwise."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x · Φ(x), Φ the normal distribution function; ``approximate="tanh"`` for its approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class PReLU(Module):
    """x if it is positive, ``weight`` · x elsewhere; one trained weight, or one per channel."""

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(cd.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to ``init``."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta, and x itself if beta · x is above ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    """The common base of Softshrink and Hardshrink."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by ``lambd``, and 0 if it is nearer to 0 than that."""

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """0 if x is within ``lambd`` of 0, x otherwise."""

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x)) without overflow."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + abs(x))."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class GLU(Module):
    """The first half of the input along ``dim`` times the sigmoid of the second half."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along ``dim``."""

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along ``dim``, without overflow."""

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W). Raises ``ValueError`` for other inputs."""

    def forward(self, input: Any) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class Softmin(_AlongDim):
    """softmax(-x) along ``dim``."""

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim)


def __dir__() -> list[str]:
    return sorted(__all__)
