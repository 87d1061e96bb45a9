"""Compare values with an answer: find the elements whose error exceeds the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.tolerance import bound, rounded, unit_in_last_place, wide
from candelabra_conformance.transport import Array


def error_in_ulp(got: Array, want: Array, d: dtype, least: Array | float = 0.0) -> float:
    """Return the largest error of finite values in units in the last place of the dtype; 0 for integers and no values.

    The unit of a value smaller than ``least`` is that of ``least``: the value may be a sum whose terms are that large.
    """
    if not (d.is_floating_point or d.is_complex) or got.shape != want.shape or not got.size:
        return 0.0
    values = wide(got)
    with np.errstate(all="ignore"):
        distance = np.abs(values - want) / unit_in_last_place(np.maximum(np.abs(want), least), d)
        finite = np.isfinite(distance) & np.isfinite(values) & np.isfinite(rounded(want, d))
    return float(np.max(distance, initial=0.0, where=finite))


def wrong(
    got: Array, want: Array, sensitivity: Array | float, length: int, d: dtype, exact: bool = False,
    least: Array | float = 0.0,
) -> Array:  # fmt: skip
    """Return True for each wrong value. The shapes are equal.

    Integers and bools must be equal, as must floats of an operator that is ``exact``. The error of other values must be
    within :func:`~candelabra_conformance.tolerance.bound`, or within ``least`` if that is larger. NaN must match NaN,
    and an infinity the same infinity, unless the answer itself jumps there when the inputs change by one eps.
    """
    if not (d.is_floating_point or d.is_complex):
        return np.asarray(got != want)
    values = wide(got)
    nearest = wide(rounded(want, d))
    with np.errstate(all="ignore"):
        same = (values == nearest) | (_is_nan(values) & _is_nan(nearest))
        if exact:
            return np.asarray(~same)
        distance = np.abs(values - want)
        allowed = np.maximum(bound(want, sensitivity, length, d), least)
        # A NaN or an infinity on one side only is an error for any finite bound.
        near = np.where(np.isfinite(distance), distance <= allowed, np.isinf(allowed) & ~np.isinf(np.abs(want)))
        near |= _near_overflow(values, want, allowed, d)
    return np.asarray(~(same | near))


def _is_nan(values: Array) -> Array:
    return np.asarray(np.isnan(values))


def _near_overflow(values: Array, want: Array, allowed: Array, d: dtype) -> Array:
    """Return True where the largest finite number is within the permitted values."""
    if d.is_complex:
        return np.zeros(np.shape(want), bool)
    low, high = rounded(want - allowed, d), rounded(want + allowed, d)
    return np.asarray(
        (np.isinf(values) | np.isinf(rounded(want, d))) & ((values == wide(low)) | (values == wide(high)))
    )


def described(
    got: Array, want: Array, bad: Array, d: dtype, sensitivity: Array | float, length: int,
    least: Array | float = 0.0, exact: bool = False,
) -> str:  # fmt: skip
    """Return a text with the number of wrong elements, and the worst of them with its index.

    ``exact``: the operator must return the nearest number, so no error is allowed.
    """
    count = int(bad.sum())
    index = _worst(got, want, bad)
    place = f" at {list(index)}" if index else ""
    text = f"{count} of {bad.size} elements wrong; worst{place}: got {_shown(got[index], d)}, expected "
    text += _shown(rounded(want, d)[index], d)
    if d.is_floating_point or d.is_complex:
        with np.errstate(all="ignore"):
            units = float(np.abs(wide(got)[index] - want[index]) / unit_in_last_place(want, d)[index])
            limit = np.maximum(bound(want, sensitivity, length, d), least)
            allowed = float(limit[index] / unit_in_last_place(want, d)[index])
        owed = "the nearest number is required" if exact else f"{allowed:.3g} allowed"
        text += f" ({units:.3g} ULP away, {owed})" if np.isfinite(units) else ""
    return text


def _worst(got: Array, want: Array, bad: Array) -> tuple[int, ...]:
    if not bad.ndim:
        return ()
    with np.errstate(all="ignore"):
        distance = np.abs(wide(got).astype(np.complex128) - want.astype(np.complex128)) / (np.abs(want) + 1e-300)
        distance = np.where(bad, np.where(np.isnan(distance), np.inf, distance), -1.0)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), bad.shape))


def _shown(value: Any, d: dtype) -> str:
    if d.is_complex:
        return repr(complex(value))
    if d.is_floating_point:
        return repr(float(value))
    return str(value)
