"""Adaptive softmax: classes in clusters by frequency, of which rare ones are narrower (Grave et al., ICML 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.container import ModuleList, Sequential
from candelabra.nn.modules.linear import Linear
from candelabra.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _Result(NamedTuple):
    """The log-probability of each target, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of ``n_classes`` classes that are sorted by frequency, the most frequent first.

    The head scores the classes below ``cutoffs[0]`` and one cluster for each cutoff; cluster i scores the classes from
    ``cutoffs[i]`` to the next cutoff, from ``in_features // div_value ** (i + 1)`` features. ``head_bias``: whether the
    head has a bias.

    Raises ``ValueError`` for cutoffs that are empty, not increasing, or not between 1 and n_classes - 1.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if not limits:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = all(low < high for low, high in pairwise([0, *limits, n_classes]))
        if not increasing or any(int(limit) != limit for limit in limits):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**number)
            narrow = Linear(in_features, width, bias=False, device=device, dtype=dtype)
            self.tail.append(Sequential(narrow, Linear(width, high - low, bias=False, device=device, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _Result:
        """Return the log-probability of each target (N,), for inputs (N, in_features), and the mean of the negatives.

        Without the batch, the target is 0-d. Only the clusters of these targets are computed. Raises ``RuntimeError``
        for shapes that do not match and for targets that are not classes.
        """
        _check_shapes(input_, target_)
        batched = target_.ndim == 1
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel():
            low, high = int(target.amin().item()), int(target.amax().item())
            if low < 0 or high >= self.n_classes:
                raise RuntimeError(
                    f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] were "
                    "found. "
                )
        position, members = target, []
        for cluster, (first, end) in enumerate(pairwise(self.cutoffs)):
            belongs = (target >= first) & (target < end)
            position = cd.where(belongs, self.shortlist_size + cluster, position)
            members.append((first, belongs.nonzero().squeeze(1)))
        output = F.log_softmax(self.head(input), 1).gather(1, position.unsqueeze(1)).squeeze(1)
        for scores, (first, rows) in zip(self.tail, members, strict=True):
            if rows.numel():
                logs = F.log_softmax(scores(input.index_select(0, rows)), 1)
                wanted = target.index_select(0, rows) - first
                output = output.index_add(0, rows, logs.gather(1, wanted.unsqueeze(1)).squeeze(1))
        return _Result(output if batched else output.squeeze(0), (-output).mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities (N, n_classes) of all classes."""
        return self._all_classes(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class (N,) of each input (N, in_features).

        Clusters are computed only for inputs whose most probable entry of the head is a cluster.
        """
        scores = self.head(input)
        found: Tensor = scores.argmax(1)
        rows = (found >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return found
        logs = self._all_classes(input.index_select(0, rows), scores.index_select(0, rows))
        return found.index_copy(0, rows, logs.argmax(1))

    def _all_classes(self, input: Tensor, scores: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, from the scores of the head."""
        head = F.log_softmax(scores, 1)
        parts = [head[:, : self.shortlist_size]]
        for cluster, module in enumerate(self.tail, self.shortlist_size):
            parts.append(F.log_softmax(module(input), 1) + head[:, cluster : cluster + 1])
        return cd.cat(parts, 1)


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with size "
            f"{input.shape}"
        )


def __dir__() -> list[str]:
    return sorted(__all__)
