"""Changes of kernels that break nothing, with the reasons: they are not mutants.

:data:`NO_FAULT` lists those that follow from the operator's definition. Others are found by trial, by
:attr:`Fault.matters`, and follow from what the kernel reads.
"""

from __future__ import annotations

from functools import cache
from typing import Final

WHOLE: Final = "eye sign random_binomial random_integers random_permutation random_poisson triangle_indices"
RECURRENT: Final = (
    "gru_sequence gru_sequence_backward lstm_sequence lstm_sequence_backward rnn_sequence rnn_sequence_backward"
)
SEVERAL: Final = (
    "first element of several", "last element beyond 16", "elements beyond 64", "elements beyond 256", "tail of 4",
    "tail of 64", "tail of 256",
)  # fmt: skip
NO_FAULT: Final[tuple[tuple[str, str, str], ...]] = (
    ("negated", "(-Q)(-R) is a decomposition as well", "linalg_qr"),
    ("stable ignored", "the reference sorts stably in any case", "argsort sort"),
    ("sorted ignored", "the reference sorts the largest elements in any case", "topk"),
    ("padding_idx ignored", "only the derivative reads it", "embedding"),
    ("scale_grad_by_freq ignored", "only the derivative reads it", "embedding"),
    ("groups ignored", "another number of groups does not fit the shapes and raises", "conv conv_weight"),
    ("shape ignored", "another shape does not fit the operands and raises", "conv_weight"),
    ("pivot ignored", "a factorization without pivots is refused", "linalg_lu_factor_ex"),
    ("no elements refused", "the result always has elements", "vdot conv_weight"),
    ("one element", "the result has no dims, or several rows", "vdot cross_product triangle_indices"),
    *((words, "the result is one element", "vdot") for words in SEVERAL),
    ("strides ignored", "most strides are refused", "view_as_complex"),
    ("weight_hr ignored", "another number of outputs does not fit the shapes and raises", "lstm_sequence"),
    ("batch_sizes ignored", "other sizes do not fit the rows and raise", RECURRENT),
    ("float32 with half its digits", "the results are small whole numbers", WHOLE),
    ("float64 with half its digits", "the results are small whole numbers", WHOLE),
)
"""The words of the fault, the reason, and the kernels."""
TRIED: Final = (
    "a dtype computed in a narrower one, if no number of the dtype changes a result, as in isnan of integers",
    "strides of an operand ignored, if no number of the operand changes a result, since only its shape is read",
    "a layout of the target ignored, if every target with it is filled, without gaps, with one number",
    "a parameter ignored, if the kernel declines every call with another value of it than one",
)
"""The changes that a trial on every call shows to break nothing, and the reason."""


@cache
def _without() -> frozenset[str]:
    return frozenset(f"{kernel}: {words}" for words, _, kernels in NO_FAULT for kernel in kernels.split())


def breaks_nothing(fault: str) -> bool:
    """Return whether the fault of this id breaks nothing."""
    return fault in _without()
