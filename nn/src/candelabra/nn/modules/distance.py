"""Distances of corresponding vectors."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norms of the differences of two batches of vectors (N, D), or of two vectors (D).

    Args:
        p: the order of the norm.
        eps: added to the differences, because the derivative of a distance of 0 is undefined.
        keepdim: keep the last dim, with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosines of the angles between vectors along ``dim``; lengths below ``eps`` count as ``eps``."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


def __dir__() -> list[str]:
    return sorted(__all__)
