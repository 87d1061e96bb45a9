"""``make_tensor``: random inputs for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Final

import candelabra as cd
from candelabra.dtypes import BOOL, COMPLEX, FLOATING

BOUNDS: Final[dict[str, tuple[int, int]]] = {"bool": (0, 2), "unsigned": (0, 10), "signed": (-9, 10), "real": (-9, 9)}
"""The default interval [low, high) of each kind of dtype."""


def make_tensor(
    *shape: int | Sequence[int],
    dtype: cd.dtype,
    device: cd.device | str,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: cd.memory_format | None = None,
) -> cd.Tensor:
    """Return a tensor of this shape, dtype and device with values drawn uniformly from [low, high).

    The default interval is [0, 2) for bools, [0, 10) for unsigned and [-9, 10) for signed integers, and [-9, 9) for
    floating and complex dtypes (real and imaginary parts). Bounds beyond the dtype's finite values are replaced by its
    lowest and highest value. ``noncontiguous``: elements of the last dim are two places apart (no effect on fewer than
    two elements). ``exclude_zero`` replaces zeros by 1, or by the smallest normal number. As
    ``torch.testing.make_tensor``.

    Raises ``ValueError`` if ``low`` is not less than ``high`` or one of them is NaN, if no value of the dtype lies in
    the interval, if ``requires_grad`` is set for integers, or if both ``noncontiguous`` and ``memory_format`` are
    given.
    """
    if requires_grad and dtype.category not in (FLOATING, COMPLEX):
        raise ValueError(f"make_tensor(): requires_grad=True needs a floating or complex dtype, got {dtype}")
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor(): noncontiguous and memory_format are mutually exclusive")
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    apart = noncontiguous and math.prod(sizes) > 1  # type: ignore[arg-type]
    drawn = _drawn((*sizes, 2) if apart else sizes, dtype, device, low, high)
    made = drawn[..., 0] if apart else drawn
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made.masked_fill_(made == 0, _smallest(dtype))
    return made.requires_grad_() if requires_grad else made


def _drawn(sizes: Any, dtype: cd.dtype, device: Any, low: float | None, high: float | None) -> cd.Tensor:
    bounds = _interval(dtype, low, high)
    if dtype.category == COMPLEX:
        parts = cd.empty((*sizes, 2), dtype=dtype.to_real(), device=device)
        return cd.view_as_complex(_uniform_(parts, *bounds))
    if dtype.category == FLOATING:
        return _uniform_(cd.empty(sizes, dtype=dtype, device=device), *bounds)
    first, last = (math.ceil(bound) for bound in bounds)
    if first >= last:
        raise ValueError(f"make_tensor(): there is no {dtype} between low={low} and high={high}")
    return cd.randint(first, last, sizes, dtype=dtype, device=device)


def _interval(dtype: cd.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the bounds: the defaults where they are None, within the dtype's values."""
    lowest, highest, kind = _limits(dtype)
    default_low, default_high = BOUNDS[kind]
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"make_tensor(): low and high must not be NaN, got low={low} and high={high}")
    if low == high and kind == "real":
        warnings.warn("make_tensor(): low == high is deprecated: use candelabra.full", FutureWarning, stacklevel=4)
    elif low >= high:
        raise ValueError(f"make_tensor(): low must be less than high, got {low} >= {high}")
    if high < lowest or low > highest or (kind != "real" and low >= highest + 1):
        raise ValueError(
            f"make_tensor(): no value of {dtype} lies in [{low}, {high}): its values go from {lowest} to {highest}"
        )
    return max(low, lowest), min(high, highest if kind == "real" else highest + 1)


def _limits(dtype: cd.dtype) -> tuple[float, float, str]:
    """Return the lowest and the highest finite value, and the kind of the dtype."""
    if dtype.category == BOOL:
        return 0, 1, "bool"
    if dtype.category in (FLOATING, COMPLEX):
        facts = cd.finfo(dtype)
        return facts.min, facts.max, "real"
    whole = cd.iinfo(dtype)
    return whole.min, whole.max, "unsigned" if whole.min == 0 else "signed"


def _uniform_(empty: cd.Tensor, low: float, high: float) -> cd.Tensor:
    """Fill with draws from [low, high); the length of the interval may exceed the dtype's values."""
    if low == high:
        return empty.fill_(low)
    if high - low >= cd.finfo(empty.dtype).max:
        return empty.uniform_(low / 2, high / 2).mul_(2)
    return empty.uniform_(low, high)


def _smallest(dtype: cd.dtype) -> complex:
    """Return the number that takes the place of zero."""
    if dtype.category == COMPLEX:
        return complex(cd.finfo(dtype).tiny, cd.finfo(dtype).tiny)
    return cd.finfo(dtype).tiny if dtype.category == FLOATING else 1


__all__ = ["make_tensor"]
