"""Making tensors: from Python values, filled, ranges, like another."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dtype, as_size, as_sizes
from candelabra._device import open_device
from candelabra._operators.primitives import creation
from candelabra._records.callables import public
from candelabra.dtypes import BOOL, INTEGER, dtype, get_default_dtype, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _made(out: Tensor, requires_grad: bool) -> Tensor:
    return out.requires_grad_() if requires_grad else out


def _filled(shape: tuple[int, ...], value: Any, d: dtype | None, device: Any, requires_grad: bool) -> Tensor:
    d = get_default_dtype() if d is None else as_dtype(d)
    return _made(creation.full.function(shape, value, dtype=d, device=open_device(device)), requires_grad)


@public(method=False, factory=True)
def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in the given shape."""
    return _filled(as_sizes(size), 0, dtype, device, requires_grad)


@public(method=False, factory=True)
def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in the given shape."""
    return _filled(as_sizes(size), 1, dtype, device, requires_grad)


@public(method=False, factory=True)
def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of unspecified content in the given shape."""
    from candelabra._tensor import wrap

    d = get_default_dtype() if dtype is None else as_dtype(dtype)
    shape = as_sizes(size)
    creation.given_shape(creation.full, (shape,))
    instance = open_device(device)
    keys = instance.keys_for(d)
    return _made(wrap(instance.backend.empty(instance.index, shape, d), keys), requires_grad)


@public(method=False, factory=True)
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """``fill_value`` in the given shape; the dtype is that of the value unless given."""
    if hasattr(fill_value, "_payload"):
        fill_value = fill_value.item()
    if dtype is None:
        from candelabra.dtypes import category_of_scalar, default_for_category

        dtype = default_for_category(category_of_scalar(fill_value))
    return _filled(as_sizes((size,)), fill_value, dtype, device, requires_grad)


@public(method=False, factory=True)
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``start``, ``start + step``, … below ``end``; int64 if all are ints, else the default floating dtype."""
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if hasattr(v, "item") else v for v in (start, end, step))
    d = None if dtype is None else as_dtype(dtype)
    whole = all(isinstance(v, int) for v in (start, end, step))
    if not all(math.isfinite(v) for v in (start, end, step)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    real = (start, end, step)
    if d is not None and d.category == INTEGER:  # cut off before anything is counted, as PyTorch does
        start, end, step = int(start), int(end), int(step)
        whole = whole or d is int64
    if step == 0:
        raise (ValueError if real[2] else RuntimeError)("step must be nonzero")  # the former where it was cut off
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    length = -((start - end) // step) if whole else math.ceil((real[1] - real[0]) / real[2])
    d = d or (int64 if whole else get_default_dtype())
    if d.category == BOOL:
        raise NotImplementedError("\"arange\" not implemented for 'Bool'")
    return _made(creation.arange.function(start, step, length, dtype=d, device=open_device(device)), requires_grad)


@public(method=False, factory=True)
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``steps`` evenly spaced values from ``start`` to ``end``, both included."""
    if not hasattr(steps, "__index__"):
        raise TypeError(f"linspace(): argument 'steps' must be int, not {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    for name, v in (("start", start), ("end", end)):
        if getattr(v, "ndim", 0):
            raise RuntimeError(
                "linspace only supports 0-dimensional start and end tensors, but got "
                f"{name} with {v.ndim} dimension(s)."
            )
    start, end = (v.item() if hasattr(v, "item") else v for v in (start, end))
    default = get_default_dtype()
    if isinstance(start, complex) or isinstance(end, complex):
        default = default.to_complex()
    d = as_dtype(dtype) if dtype is not None else default
    if d.category == BOOL:
        raise NotImplementedError("\"linspace\" not implemented for 'Bool'")
    if d.category == INTEGER:
        start, end = int(start), int(end)
    return _made(creation.linspace.function(start, end, steps, dtype=d, device=open_device(device)), requires_grad)


@public(method=False, factory=True)
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of an ``n`` × ``m`` matrix (``m`` = ``n`` unless given), zeros elsewhere."""
    n, m = as_size(n), m if m is None else as_size(m)
    if n < 0 or (m is not None and m < 0):
        raise RuntimeError(f"n must be greater or equal to 0, got {n if n < 0 else m}")
    d = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return _made(creation.eye.function(n, n if m is None else m, dtype=d, device=open_device(device)), requires_grad)


def _like(input: Tensor, value: Any, d: Any, device: Any, requires_grad: bool) -> Tensor:
    return _filled(tuple(input.shape), value, d or input.dtype, device or input.device, requires_grad)


@public(method=False, factory=True)
def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros in the shape, dtype and device of ``input``."""
    return _like(input, 0, dtype, device, requires_grad)


@public(method=False, factory=True)
def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones in the shape, dtype and device of ``input``."""
    return _like(input, 1, dtype, device, requires_grad)


@public(method=False, factory=True)
def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of unspecified content in the shape, dtype and device of ``input``."""
    return empty(
        tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device, requires_grad=requires_grad
    )


@public(method=False, factory=True)
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``fill_value`` in the shape, dtype and device of ``input``."""
    return _like(input, fill_value, dtype, device, requires_grad)
