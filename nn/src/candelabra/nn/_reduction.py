"""PyTorch's internal module of this name, which programs with losses of their own import: reductions as numbers."""

from __future__ import annotations

from candelabra.nn._operators.losses import REDUCTIONS, legacy_reduction, reduction_of


def get_enum(reduction: str) -> int:
    """Return the number of a reduction: none 0, mean 1, sum 2. Raise ``ValueError`` for another word."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return REDUCTIONS.index(reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the two older arguments stand for, with a warning that they are deprecated."""
    size_average, reduce = size_average is not False, reduce is not False
    found = legacy_reduction if emit_warning else reduction_of
    return found(size_average, reduce, "mean")


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that the two older arguments stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
