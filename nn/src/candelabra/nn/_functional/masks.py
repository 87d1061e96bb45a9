"""Masks of attention."""

from __future__ import annotations

import math
import warnings

from candelabra.dtypes import bool_
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor


def added_mask(
    mask: Tensor | None, name: str, dtype: DType, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """Return a mask of numbers: of a bool mask, -inf where it is True and 0 elsewhere; others are returned.

    Warns if another mask has another dtype. Raises ``AssertionError`` for integers.
    """
    if mask is None:
        return None
    if mask.dtype is not bool_ and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warn_of_mismatch(name, other_name)
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf) if mask.dtype is bool_ else mask


def warn_of_mismatch(name: str, other_name: str) -> None:
    """Warn that two masks have different dtypes."""
    warnings.warn(
        f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=4
    )
