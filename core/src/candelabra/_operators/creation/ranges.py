"""One-dimensional tensors of evenly spaced numbers: arange, range, linspace, logspace."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Final
from candelabra._codegen.arguments import as_device, kind_of
from candelabra._operators.creation.filled import number_of
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import (
    BOOL,
    COMPLEX,
    INTEGER,
    complex64,
    complex128,
    float32,
    float64,
    get_default_dtype,
    int64,
)

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Number, Tensor


# -- arange -----------------------------------------------------------------------------------------------------------
@operator(by(lambda start, step, length, *_: (length,)), promote=unpromoted, method=False, out=False, public=False)
def arange(start: Number, step: Number, length: int, *, dtype: DType, device: Device) -> Tensor:
    """Return ``start + i * step`` for i < ``length``, computed in float64 or int64 and cast to ``dtype``."""
    ...


@public(public=False, factory=True)
def arange_to_end(
    start: Number | Tensor,
    end: Number | Tensor | None = None,
    step: Number | Tensor = 1,
    *,
    dtype: DType | None = None,
    device: Device = None,
) -> Tensor:
    """Return the numbers ``start``, ``start + step``, … before ``end``; ``arange(end)`` starts at 0.

    By default the dtype is int64 if all arguments are ints, else the default floating dtype. Raises ``RuntimeError``
    for a step of 0, and for a step whose sign does not lead to ``end``.
    """
    if end is None:
        start, end = 0, start
    start, end, step = _real("arange", start, end, step)
    if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(step)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    is_integer = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    exact = (start, end, step)
    if dtype is not None and dtype.category == INTEGER:  # truncated before the length is computed, as in PyTorch
        start, end, step = int(start), int(end), int(step)
        is_integer = is_integer or dtype is int64
    if step == 0:
        raise (ValueError if exact[2] else RuntimeError)(
            "step must be nonzero"
        )  # ValueError if the step was truncated to 0
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    length = -((start - end) // step) if is_integer else math.ceil((exact[1] - exact[0]) / exact[2])
    if dtype is None:
        dtype = int64 if is_integer else get_default_dtype()
    if dtype.category == BOOL:
        raise NotImplementedError("\"arange\" not implemented for 'Bool'")
    return arange.function(start, step, int(length), dtype=dtype, device=device)


arange_overloads = overloads("arange", arange_to_end, method=False)


@public(method=False, factory=True)
def range(
    start: Number | Tensor,
    end: Number | Tensor | None = None,
    step: Number | Tensor = 1,
    *,
    dtype: DType | None = None,
    device: Device = None,
) -> Tensor:
    """Return ``start``, ``start + step``, … up to ``end``, which is included if it is one of them.

    By default the dtype is the default floating dtype. Raises ``RuntimeError`` for a step of 0, and for a step whose
    sign does not lead to ``end``.
    """
    if end is None:
        start, end = 0, start
    start, end, step = _real("range", start, end, step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    length = int((end - start) / step + 1)
    return arange.function(start, step, length, dtype=dtype or get_default_dtype(), device=device)


REAL: Final = frozenset({int, float})


def _real(name: str, *values: Number | Tensor) -> tuple[float, ...]:
    """Bounds and step as real numbers. Raise ``TypeError`` for anything else."""
    if REAL.issuperset(map(type, values)):
        return values  # type: ignore[return-value]
    numbers = [number_of(value) for value in values]
    for title, value in zip(("start", "end", "step"), numbers, strict=True):
        if not isinstance(value, (int, float)):
            raise TypeError(f"{name}(): argument '{title}' must be a real number, not {kind_of(value)}")
    return tuple(numbers)  # type: ignore[arg-type]


@operator(by(lambda input, start, step, length, *_: (length,)), promote=unpromoted, out=False, public=False)
def new_arange(input: Tensor, start: Number, step: Number, length: int, *, dtype: DType | None = None) -> Tensor:
    """Return ``start + i * step`` for i < ``length``, on the device of ``input``, by default in its dtype."""
    return arange.function(start, step, length, dtype=dtype or input.dtype, device=input._instance)


# -- linspace ---------------------------------------------------------------------------------------------------------
def _check_steps(steps: int) -> tuple[int]:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return (steps,)


@operator(
    by(lambda start, end, steps, *_: _check_steps(steps)), promote=unpromoted, method=False, out=False, public=False
)
def linspace(start: Number, end: Number, steps: int, *, dtype: DType, device: Device) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    Half types are computed in float32 and rounded once, so that the distance of the ends may be larger than the
    largest number of the dtype.
    """
    ...


@public(public=False, factory=True)
def linspace_inferred(
    start: Number | Tensor, end: Number | Tensor, steps: int, *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, both included. The ends may be 0-d tensors.

    By default the dtype is the default floating dtype, or its complex counterpart if an end is complex. For an integer
    dtype the ends are truncated first. Raises ``RuntimeError`` for a negative number of steps and for ends with dims.
    """
    if not hasattr(steps, "__index__"):
        raise TypeError(f"linspace(): argument 'steps' must be int, not {kind_of(steps)}")
    _check_steps(steps)
    start, end = _ends("linspace", start, end)
    if dtype is None:
        dtype = get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    if dtype.category == BOOL:
        raise NotImplementedError("\"linspace\" not implemented for 'Bool'")
    if dtype.category == INTEGER:
        start, end = int(start), int(end)  # type: ignore[arg-type]  # Python raises TypeError for a complex end
    return linspace.function(start, end, steps, dtype=dtype, device=device)


linspace_overloads = overloads("linspace", linspace_inferred, method=False)


def _ends(name: str, start: Number | Tensor, end: Number | Tensor) -> tuple[Number, Number]:
    """Return both ends as numbers. Raise ``RuntimeError`` for a tensor with dims."""
    for title, value in (("start", start), ("end", end)):
        rank = getattr(value, "ndim", 0)
        if rank:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {title} with {rank} dimension(s)."
            )
    return number_of(start), number_of(end)


@operator(by(lambda input, start, end, steps, *_: _check_steps(steps)), promote=unpromoted, out=False, public=False)
def new_linspace(input: Tensor, start: Number, end: Number, steps: int, *, dtype: DType | None = None) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, on the device of ``input``, by default in its
    dtype.
    """
    return linspace.function(start, end, steps, dtype=dtype or input.dtype, device=input._instance)


for _record in (arange, new_arange, linspace, new_linspace):
    _record.no_gradient("computed from numbers")


# -- logspace ---------------------------------------------------------------------------------------------------------
@public(method=False, factory=True)
def logspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    base: Number = 10.0,
    *,
    dtype: DType | None = None,
    device: Device = None,
) -> Tensor:
    """Return ``steps`` powers of ``base`` whose exponents are evenly spaced from ``start`` to ``end``, both included.

    ``start`` and ``end`` are numbers or 0-d tensors. The result is computed in float64 or complex128, then cast:
    rounded to a floating dtype, truncated to an integer dtype. Raises ``RuntimeError`` for a negative number of steps
    and for ends with dims.
    """
    start, end = _ends("logspace", start, end)
    if dtype is None:
        dtype = get_default_dtype()
        if any(isinstance(v, complex) for v in (start, end, base)):
            dtype = dtype.to_complex()
    if dtype.category == INTEGER:  # truncated first, as in linspace
        start, end = int(start), int(end)  # type: ignore[arg-type]  # Python raises TypeError for a complex end
    dtypes = as_device(device).keys
    wide = float64 if float64 in dtypes else float32  # some devices do not have float64
    if dtype.category == COMPLEX:
        wide = complex128 if complex128 in dtypes else complex64
    exponents = linspace_inferred(start, end, steps, dtype=wide, device=device)
    return (base**exponents).to(dtype)
