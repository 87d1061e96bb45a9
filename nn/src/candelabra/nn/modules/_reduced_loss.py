"""The bases of the modules of losses."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.nn.modules.module import Module


class _Loss(Module):
    """The common base. ``reduction``: "mean", "sum" or "none"; ``size_average`` and ``reduce`` are its older form."""

    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is None and reduce is None:
            self.reduction = reduction
        else:
            from candelabra.nn._operators.losses import legacy_reduction  # most programs do not need it

            self.reduction = legacy_reduction(size_average, reduce, reduction, 3)


class _WeightedLoss(_Loss):
    """A loss with a buffer ``weight``, or None."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
