"""Losses of the top namespace, whose reduction is a number: 0 for none, 1 for the mean, 2 for the sum.

PyTorch's ``nn.functional`` names reductions, while ``torch.kl_div`` and its relatives number them.
"""

from __future__ import annotations

from candelabra.library import overloads
from candelabra.nn._operators.likelihood_losses import poisson_nll_loss
from candelabra.nn._operators.losses import REDUCTIONS, binary_cross_entropy_with_logits, kl_div
from candelabra.nn._operators.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    triplet_margin_loss,
)
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _named(loss: str, reduction: object) -> str:
    """Return the name of a reduction. Losses refuse the digits of a number that stands for none."""
    if not isinstance(reduction, int):
        raise TypeError(f"{loss}(): argument 'reduction' must be int, not {type(reduction).__name__}")
    return REDUCTIONS[reduction] if 0 <= reduction < len(REDUCTIONS) else str(reduction)


def numbered_kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """``nn.functional.kl_div`` with a numbered reduction."""
    return kl_div(input, target, reduction=_named("kl_div", reduction), log_target=log_target)


def numbered_binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """``nn.functional.binary_cross_entropy_with_logits`` with a numbered reduction."""
    return binary_cross_entropy_with_logits(
        input, target, weight, reduction=_named("binary_cross_entropy_with_logits", reduction), pos_weight=pos_weight
    )


def numbered_poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """``nn.functional.poisson_nll_loss`` with a numbered reduction."""
    return poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named("poisson_nll_loss", reduction))


def numbered_margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """``nn.functional.margin_ranking_loss`` with a numbered reduction."""
    return margin_ranking_loss(input1, input2, target, margin, reduction=_named("margin_ranking_loss", reduction))


def numbered_hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """``nn.functional.hinge_embedding_loss`` with a numbered reduction."""
    return hinge_embedding_loss(input, target, margin, reduction=_named("hinge_embedding_loss", reduction))


def numbered_cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """``nn.functional.cosine_embedding_loss`` with a numbered reduction."""
    return cosine_embedding_loss(input1, input2, target, margin, reduction=_named("cosine_embedding_loss", reduction))


def numbered_triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """``nn.functional.triplet_margin_loss`` with a numbered reduction."""
    return triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_named("triplet_margin_loss", reduction)
    )


kl_div_overloads = overloads("kl_div", numbered_kl_div, method=False)
binary_cross_entropy_with_logits_overloads = overloads(
    "binary_cross_entropy_with_logits", numbered_binary_cross_entropy_with_logits, method=False
)
poisson_nll_loss_overloads = overloads("poisson_nll_loss", numbered_poisson_nll_loss, method=False)
margin_ranking_loss_overloads = overloads("margin_ranking_loss", numbered_margin_ranking_loss, method=False)
hinge_embedding_loss_overloads = overloads("hinge_embedding_loss", numbered_hinge_embedding_loss, method=False)
cosine_embedding_loss_overloads = overloads("cosine_embedding_loss", numbered_cosine_embedding_loss, method=False)
triplet_margin_loss_overloads = overloads("triplet_margin_loss", numbered_triplet_margin_loss, method=False)
