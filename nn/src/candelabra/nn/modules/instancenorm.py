"""Normalization of every channel of every sample."""

from __future__ import annotations

import warnings
from typing import Any

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """The common base of the instance norms (Ulyanov, Vedaldi & Lempitsky, 2016). Subclasses define ``_rank``."""

    _rank: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ``ValueError`` unless the input has the right number of dims."""
        if input.ndim not in (self._rank + 1, self._rank + 2):
            raise ValueError(f"expected {self._rank + 1}D or {self._rank + 2}D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.ndim - self._rank - 1
        if input.shape[dim] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.shape[dim]}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        return self._normalized(input) if dim else self._normalized(input.unsqueeze(0)).squeeze(0)

    def _normalized(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        given = [name for name in ("running_mean", "running_var") if prefix + name in state_dict]
        if local_metadata.get("version") is None and not self.track_running_stats and given:
            names, kind = " and ".join(f'"{prefix}{name}"' for name in given), type(self).__name__
            error_msgs.append(
                f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict "
                f"is a checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats "
                "by default since 0.4.0. Please remove these keys from state_dict. If the running stats are actually "
                f"needed, instead set track_running_stats=True in {kind} to enable them. See the documentation of "
                f"{kind} for details."
            )
            for name in given:
                del state_dict[prefix + name]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 per channel of each sample: (N, C, L) or (C, L).

    By default without weight and bias, and with the input's statistics in evaluation too.
    """

    _rank = 1


class InstanceNorm2d(_InstanceNorm):
    """Mean 0 and variance 1 per channel of each sample: (N, C, H, W) or (C, H, W); see :class:`InstanceNorm1d`."""

    _rank = 2


class InstanceNorm3d(_InstanceNorm):
    """Mean 0 and variance 1 per channel of each sample: (N, C, D, H, W) or (C, D, H, W)."""

    _rank = 3


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm1d` whose ``num_features`` is dim 1 of its first input."""

    cls_to_become = InstanceNorm1d
    _rank = 1


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm2d` whose ``num_features`` is dim 1 of its first input."""

    cls_to_become = InstanceNorm2d
    _rank = 2


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm3d` whose ``num_features`` is dim 1 of its first input."""

    cls_to_become = InstanceNorm3d
    _rank = 3


def __dir__() -> list[str]:
    return sorted(__all__)
