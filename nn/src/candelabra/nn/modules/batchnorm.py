"""Normalization of every channel over the batch."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, full, ones, zeros
from candelabra.dtypes import int64
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.normalization import Scaled

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"]


class _BatchNorm(Scaled):
    """The common base of the batch norms (Ioffe & Szegedy, 2015). ``ranks``: the numbers of dims of valid inputs."""

    ranks: tuple[int, ...]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._add_scale(num_features, device, dtype, weight=affine, bias=affine and bias)
        kept = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("num_batches_tracked", full((), 0, dtype=int64, device=device) if kept else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the number of batches to 0, if they are tracked."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.ranks:
            expected = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the cumulative mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked.item())
        of_batch = self.training or self.running_mean is None
        moved = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if moved else None, self.running_var if moved else None, self.weight, self.bias,
            of_batch, momentum, self.eps,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C) or (N, C, L). Evaluation uses running statistics."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C, H, W). Evaluation uses running statistics."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C, D, H, W). Evaluation uses running statistics."""

    ranks = (5,)


def __dir__() -> list[str]:
    return sorted(__all__)
