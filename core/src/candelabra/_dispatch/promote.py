"""Step 3: promotion. Cast operands of several dtypes to one dtype, with recorded casts, and dispatch the call again."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._dispatch.key import redispatch
from candelabra._records.accepts import refusal
from candelabra._records.promotion import identical
from candelabra._records.schema import INDEX, INDICES, LIST, MASK, OPERAND, TENSOR, Parameter
from candelabra._tensor import Tensor
from candelabra.dtypes import (
    Operand,
    can_cast,
    category_of_scalar,
    default_for_category,
    dtype,
    result_dtype,
)

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def common_dtype(op: Operator[..., Any], args: tuple[Any, ...]) -> dtype:
    """Return the dtype that the call computes in: the operands' common dtype, after the record's promotion."""
    return op.promote(result_dtype(operands(op, args)))


def operands(op: Operator[..., Any], args: tuple[Any, ...]) -> list[Operand]:
    """Return the operands that take part in promotion as (dtype, rank). Indices and masks do not."""
    found = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if p.kind in (INDEX, MASK, INDICES):
            continue
        if isinstance(value, Tensor):
            found.append(Operand(value.dtype, 2 if value._payload.shape else 1))
        elif p.kind == LIST:
            found += [Operand(t.dtype, 2 if t._payload.shape else 1) for t in value]
        elif p.kind == OPERAND:
            found.append(Operand(default_for_category(category_of_scalar(value)), 0))
    return found


def promoting(op: Operator[..., Any], inplace: bool) -> Callable[..., Any]:
    """Return a function that casts the operands and dispatches again, or raises if the operator never casts them."""
    if op.promote is identical:

        def refuse(*args: Any) -> NoReturn:
            raise different_dtypes(op, args)

        return refuse

    def promote(*args: Any) -> Any:
        compute = common_dtype(op, args)
        if inplace:
            return _inplace(op, args, compute)
        return redispatch(op, cast_operands(op, args, compute))

    return promote


def different_dtypes(op: Operator[..., Any], args: tuple[Any, ...]) -> RuntimeError:
    """The error for operands of several dtypes, of an operator that casts none."""
    tensors = {p.name: t for p, t in zip(op.schema.parameters, args, strict=True) if p.kind == TENSOR}
    dtypes = " and ".join([title(t.dtype) for t in tensors.values()])
    return RuntimeError(f"{op.title}(): expected {' and '.join(tensors)} to have the same dtype, but got {dtypes}")


def casting(op: Operator[..., Any], words: str) -> Callable[..., Any]:
    """Return a function for a dtype that the operator refuses: it casts to the ``dtype`` argument and calls again.

    It raises NotImplementedError(``words``) if the operator refuses that dtype too.
    """
    place = [p.name for p in op.schema.parameters].index("dtype")

    def cast(*args: Any) -> Any:
        if args[place] is None or refusal(op, args[place]):
            raise NotImplementedError(words)
        return redispatch(op, cast_operands(op, args, args[place]))

    return cast


def cast_operands(op: Operator[..., Any], args: tuple[Any, ...], compute: dtype) -> tuple[Any, ...]:
    """Cast every operand to ``compute``, except scalars of a lower category, which every kernel accepts.

    If all operands are numbers, combined with a mask, the first becomes a tensor.
    """
    cast: list[Any] = []
    beside = None if any(map(_is_operand, op.schema.parameters, args)) else next(filter(_is_tensor, args))
    for p, value in zip(op.schema.parameters, args, strict=True):
        if p.kind in (INDEX, MASK, INDICES):
            cast.append(value)
        elif isinstance(value, Tensor):
            cast.append(value if value.dtype is compute else value.to(compute))
        elif p.kind == LIST:
            cast.append(tuple(t if t.dtype is compute else t.to(compute) for t in value))
        elif p.kind == OPERAND and beside is not None:
            cast.append(beside.new_full((), value, dtype=compute))
            beside = None
        else:
            cast.append(value)
    return tuple(cast)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "_payload")


def _is_operand(p: Parameter, value: Any) -> bool:
    """Return whether an argument takes part in determining the dtype and the device of a call."""
    return p.kind == LIST or (_is_tensor(value) and p.kind not in (INDEX, MASK, INDICES))


def _inplace(op: Operator[..., Any], args: tuple[Any, ...], compute: dtype) -> Any:
    """Compute in the common dtype, and write the result into the first tensor if it can be cast to its dtype."""
    target = args[0]
    result = op.results[0](compute)
    if not can_cast(result, target.dtype):
        raise RuntimeError(f"result type {result.title} can't be cast to the desired output type {target.dtype.title}")
    if result is target.dtype and compute is target.dtype:
        return redispatch(op, (target, *cast_operands(op, args, compute)[1:]), inplace=True)
    value = redispatch(op, cast_operands(op, args, compute))
    check_inplace_shape(op, target, value)
    return target.copy_(value)


def check_inplace_shape(op: Operator[..., Any], target: Any, value: Any) -> None:
    """Raise RuntimeError if an in-place operator would have to broadcast the tensor that it writes to."""
    if tuple(value._payload.shape) != tuple(target._payload.shape):
        raise RuntimeError(
            f"{op.name}_(): output with shape {list(target._payload.shape)} doesn't match the broadcast shape "
            f"{list(value._payload.shape)}"
        )


def title(d: dtype) -> str:
    """Return PyTorch's name of a dtype in error messages."""
    return d.title
