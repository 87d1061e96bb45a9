"""Normalization of every channel over the batch."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.dtypes import int64
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.lazy import LazyModuleMixin
from candelabra.nn.modules.module import Module
from candelabra.nn.modules.normalization import ScaledNormalization
from candelabra.nn.parameter import UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(ScaledNormalization):
    """The common base of batch and instance norms: weight, bias and running statistics per channel."""

    _version = 2
    num_features: int
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
        self.register_buffer("running_mean", cd.zeros(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("running_var", cd.ones(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("num_batches_tracked", cd.full((), 0, dtype=int64, device=device) if kept else None)
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

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *others: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        # Version 2 added this buffer. A state without a version may be a plain dict, for instance of another program.
        if local_metadata.get("version", 0) < 2 and self.track_running_stats and key not in state_dict:
            kept = self.num_batches_tracked
            known = kept is not None and kept.device.type != "meta"
            state_dict[key] = kept if known else cd.full((), 0, dtype=int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)


class _BatchNorm(_NormBase):
    """The common base of the batch norms (Ioffe & Szegedy, 2015)."""

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ``ValueError`` unless the input has the right number of dims."""
        raise NotImplementedError(f"{type(self).__name__} must define _check_input_dim")

    def _count_batch(self) -> float:
        """Count a batch in training, and return the weight of its statistics in the running ones."""
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            batches = self.num_batches_tracked
            if batches is not None:
                batches.add_(1)
                if self.momentum is None:  # the cumulative mean over all batches
                    momentum = 1.0 / float(batches.item())
        return momentum

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self._count_batch()
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        moved = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if moved else None, self.running_var if moved else None, self.weight, self.bias,
            of_batch, momentum, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C) or (N, C, L). Evaluation uses running statistics."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C, H, W). Evaluation uses running statistics."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 per channel over the batch: (N, C, D, H, W). Evaluation uses running statistics."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of (N, C, *) over the batches of all ranks of ``process_group``, by default of all processes.

    The batches may have different sizes. In one process, and in evaluation with running statistics, this is
    :class:`BatchNorm1d` to ``3d`` for any number of dims.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        from candelabra import distributed as dist

        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        if not of_batch or not dist.is_initialized() or dist.get_world_size(self.process_group) == 1:
            return super().forward(input)
        from candelabra.nn.parallel._batch_norm import batch_norm_over_ranks

        self._check_input_dim(input)
        momentum = self._count_batch()
        running = (self.running_mean, self.running_var) if self.training and self.track_running_stats else (None, None)
        return batch_norm_over_ranks(input, *running, self.weight, self.bias, momentum, self.eps, self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch norm in a module, and the module itself if it is one, and return the module.

        The new layers have the parameters and buffers of the old ones.
        """
        out = module
        if isinstance(module, _BatchNorm):
            out = SyncBatchNorm(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name, member in (*module._parameters.items(), *module._buffers.items()):
                setattr(out, name, member)
            out.training = module.training
        for name, child in module.named_children():
            out.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return out


# -- norms that learn the number of channels from their first input ---------------------------------------------------
class _LazyNormBase(LazyModuleMixin):
    """What the lazy norms add: parameters and running statistics get their shape at the first call."""

    num_features: int
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # The base class makes no tensors, since they would be replaced.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = cd.full((), 0, dtype=int64, device=device)

    def _check_input_dim(self, input: Tensor) -> None:
        self.cls_to_become._check_input_dim(self, input)  # type: ignore[union-attr] # each subclass has one

    def reset_parameters(self) -> None:
        """Set parameters and running statistics to their first values, if their shape is known."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc] # that of the norm

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters and the running statistics one element per channel of the input."""
        loaded = not self.has_uninitialized_params()
        if self.num_features == 0:
            self.num_features = input.shape[1]
        if loaded:
            return
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm1d` whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm2d` whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm3d` whose ``num_features`` is the number of channels of its first input."""

    cls_to_become = BatchNorm3d


def __dir__() -> list[str]:
    return sorted(__all__)
