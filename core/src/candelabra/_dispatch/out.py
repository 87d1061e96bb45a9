"""The ``out=`` form: compute the result, then write it into the given tensor.

A pointwise kernel with a function ``into(out, *arguments)`` writes into the payload ``out`` itself, if the tensor has
the dtype of the result: a third of the memory traffic of a result and a copy. The function declines, by
``NotImplemented``, an ``out`` of another shape than the result's, and whatever else it does not serve.
"""

from __future__ import annotations

import warnings

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_overlap, check_writable, rebind
from candelabra._keys import AUTOGRAD, NO_GRAD, SCALAR_BITS, SCALAR_FIRST, VIEW, state
from candelabra._records.schema import MASK, OPERAND, PLAIN
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK, can_cast

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def write_out(op: Operator[..., Any], out: Any, args: tuple[Any, ...]) -> Any:
    """Run ``op`` and write the result into ``out``, resized if its shape differs (with a warning unless empty).

    ``args`` are in the schema's order. ``out`` may have a wider dtype of the same or a higher category. If the record
    has ``out="exact"``, it must have the result's dtype and share no memory with an argument; with ``out="disjoint"``
    only the latter holds. Neither ``out`` nor the arguments may require grad.
    """
    if not state.bits & NO_GRAD and any(getattr(a, "_keys", 0) & AUTOGRAD for a in args):
        raise _undifferentiable(op.name)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for p, argument in zip(op.schema.parameters, args, strict=True):
        if p.keyword_only:
            named[p.name] = argument
        else:
            positional += argument if p.variadic else (argument,)
    if out.__class__ is Tensor and op.out is True and _written_by_kernel(op, out, args):
        return out
    value = op.function(*positional, **named)
    return store(op.name, value, out, op.out == "exact", args if isinstance(op.out, str) else ())


def _written_by_kernel(op: Operator[..., Any], out: Tensor, args: tuple[Any, ...]) -> bool:
    """Let the kernel of a call write into ``out``, and return whether it has."""
    key = state.bits | out._keys & ~DTYPE_MASK
    for p, argument in zip(op.schema.parameters, args, strict=True):
        if p.kind == PLAIN or argument is None:
            continue
        if isinstance(argument, Tensor):
            key |= argument._keys & ~DTYPE_MASK if p.kind == MASK else argument._keys
        elif p.kind == OPERAND and type(argument) in SCALAR_BITS:
            key |= SCALAR_BITS[type(argument)] | (SCALAR_FIRST if argument is args[0] else 0)
        else:
            return False
    found: Any = op.out_table[key]
    into = getattr(getattr(found, "kernel", None), "into", None)  # a function that traces calls has no kernel
    if into is None or (out._keys ^ found.keys) & DTYPE_MASK:
        return False
    if key & VIEW:
        for tensor in (out, *args):
            if isinstance(tensor, Tensor):
                tensor._fresh()
    check_writable(out)
    check_overlap(out)
    try:
        written = into(out._payload, *[a._payload if isinstance(a, Tensor) else a for a in args])
    except Exception:  # the call that computes the result raises an error that names the argument
        return False
    if written is NotImplemented:
        return False
    out._counter[0] += 1
    return True


def store(name: str, value: Any, out: Any, exact: bool = False, inputs: tuple[Any, ...] = ()) -> Any:
    """Write ``value``, a tensor or a tuple of tensors, into ``out``, by the rules of :func:`write_out`.

    If ``out`` is None, return the value. For several tensors, or with ``exact``, the dtypes must be equal. None of
    ``inputs`` may share memory with ``out``.
    """
    if out is None:
        return value
    if isinstance(out, Tensor):
        for tensor in inputs:
            check_disjoint(out, tensor)
    if exact and isinstance(out, Tensor) and isinstance(value, Tensor) and out.dtype is not value.dtype:
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {value.dtype}, but got {out.dtype} instead")
    if isinstance(value, Tensor):
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if not state.bits & NO_GRAD and (out._keys | value._keys) & AUTOGRAD:
            raise _undifferentiable(name)
        _write(name, value, out)
        return out
    if not isinstance(out, (tuple, list)) or len(out) != len(value):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(value)} Tensors")
    for v, o in zip(value, out, strict=True):
        if isinstance(o, Tensor) and o.dtype is not v.dtype:
            raise RuntimeError(f"{name}(): Expected out tensor to have dtype {v.dtype}, but got {o.dtype} instead")
    stored = [store(name, v, o) for v, o in zip(value, out, strict=True)]
    return type(value)(*stored) if hasattr(value, "_fields") else tuple(stored)


def check_disjoint(out: Tensor, arguments: Any) -> None:
    """Raise RuntimeError if ``out`` shares memory with an argument, as far as this is known for contiguous tensors."""
    if isinstance(arguments, (tuple, list)):
        for element in arguments:
            check_disjoint(out, element)
    elif getattr(arguments, "_counter", None) is out._counter and out.is_contiguous() and arguments.is_contiguous():
        starts = out.storage_offset(), arguments.storage_offset()
        if max(starts) < min(starts[0] + out.numel(), starts[1] + arguments.numel()):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )


def _undifferentiable(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad."
    )


def _write(name: str, value: Any, out: Any) -> None:
    if value.device != out.device:
        raise RuntimeError(f"{name}(): Expected out tensor to have device {value.device}, but got {out.device} instead")
    if not can_cast(value.dtype, out.dtype):
        raise RuntimeError(
            f"result type {value.dtype.title} can't be cast to the desired output type {out.dtype.title}"
        )
    if value.shape != out.shape:
        if out.numel():
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(value.shape)}. This behavior is deprecated: resize it "
                "yourself, or pass an empty tensor.",
                UserWarning,
                stacklevel=4,
            )

        rebind(out, value.to(out.dtype))
    else:
        out.copy_(value)
