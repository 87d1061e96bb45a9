"""Normalization over the last dims, over groups of channels, and by neighboring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter, unset

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class ScaledNormalization(Module):
    """The common base of all normalizations: weight and bias."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_scale(self, shape: Any, device: Any, dtype: Any, **enabled: bool) -> None:
        for name, there in enabled.items():
            self.register_parameter(name, unset(there, shape, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)


class _ResponseNorm(Module):
    """The common base of the norms over neighboring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """``input / (k + alpha * mean) ** beta``, with the mean of squares over ``size`` neighboring channels of (N, C, *).

    Krizhevsky, Sutskever and Hinton, 2012.
    """


class CrossMapLRN2d(_ResponseNorm):
    """:class:`LocalResponseNorm` over (N, C, H, W), under the name of LuaTorch's ``SpatialCrossMapLRN``.

    PyTorch's class of this name computes something else: channel 0 stays in the sums of all later channels.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        return super().forward(input)


class LayerNorm(ScaledNormalization):
    """Mean 0 and variance 1 over the last dims, then times ``weight`` plus ``bias`` (Ba et al., 2016)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_scale(
            self.normalized_shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias
        )
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(ScaledNormalization):
    """Root mean square 1 over the last dims, then times ``weight`` (Zhang & Sennrich, 2019)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_scale(self.normalized_shape, device, dtype, weight=elementwise_affine)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(ScaledNormalization):
    """Mean 0 and variance 1 over groups of channels, then ``weight`` and ``bias`` per channel (Wu & He, 2018)."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_scale(num_channels, device, dtype, weight=affine, bias=affine and bias)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


def __dir__() -> list[str]:
    return sorted(__all__)
