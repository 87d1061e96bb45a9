"""In-place forms, computed from the record of the functional one.

View operators write nothing and have their own in-place form (``viewing.py``). For other operators there are two
methods. If the call is not recorded and the backend has an in-place kernel (its name ends in ``_``), a generated
adapter calls it and increments the version. Otherwise the result is computed in new memory and copied into the tensor,
which is correct on every device, including those with immutable arrays, and for views.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.saved import with_node
from candelabra._autograd.views import (
    check_operand_overlap,
    check_overlap,
    check_writable,
    refresh_all,
    refreshed_inplace,
    write,
    write_recorded,
)
from candelabra._codegen.adapters import ResolvedCall, guard_lines, payload_argument
from candelabra._codegen.source import build
from candelabra._device import Instance, instance_of_key
from candelabra._dispatch.declining import noting
from candelabra._dispatch.failure import fail
from candelabra._dispatch.key import redispatch
from candelabra._dispatch.promote import check_inplace_shape
from candelabra._dispatch.tracing import reporting
from candelabra._dispatch.viewing import inplace_view
from candelabra._keys import (
    AUTOGRAD,
    INFERENCE,
    INFERENCE_MODE,
    NO_GRAD,
    SCALAR_FIRST,
    SCALAR_MASK,
    TRACING,
    VIEW,
    state,
    switch,
)
from candelabra._records.promotion import real_part
from candelabra._records.schema import OPERAND, TENSOR
from candelabra._serving import KernelLink, serving
from candelabra.dtypes import DTYPE_MASK, can_cast, dtype

if TYPE_CHECKING:
    from candelabra._records.record import Operator


OF_BODY: Final = "its in-place operators are dispatched"


def compile_inplace(
    op: Operator[..., Any], key: int, compute: dtype, instance: Instance, body: Callable[..., Any] | None = None
) -> tuple[Callable[..., Any], str]:
    """Compile the in-place form for one key, and return it with a sentence about it.

    ``body``: the function that serves calls without a kernel, if the record has a body for its in-place form.
    """
    kernels = serving(instance, op.name + "_", compute, key)
    if body is not None and (not kernels or instance.capabilities.virtual):
        return body, OF_BODY
    if op.view:
        return inplace_view(op), "in-place form of a view"
    result = op.results[0](compute)
    if op.results[0] is real_part and compute.is_complex:
        raise RuntimeError(f"In-place {op.name} is not supported for complex tensors.")
    if not can_cast(result, compute):
        raise RuntimeError(f"result type {result.title} can't be cast to the desired output type {compute.title}")
    recording = bool(key & AUTOGRAD) and not key & NO_GRAD
    foreign = key & INFERENCE and not key & INFERENCE_MODE  # inference tensors are writable in inference mode only
    if (
        not kernels
        or recording
        or foreign
        or result is not compute
        or instance.immutable
        or compute not in instance.capabilities.arithmetic
    ):
        if body is not None:
            return body, OF_BODY
        return writing(op), "in-place form: the result is copied into the tensor"
    last = noting(body or writing(op), instance, op.name + "_", compute)
    return _compile_direct(op, key, kernels, last), f"in-place {kernels[0].origin(op.name + '_', instance)}"


def _compile_direct(
    op: Operator[..., Any], key: int, kernels: list[KernelLink], last: Callable[..., Any]
) -> Callable[..., Any]:
    """Compile an adapter that calls the first in-place kernel. The next one serves the calls that it declines, and
    ``last`` those that all decline.
    """
    (kernel, _), *below = kernels
    instance = instance_of_key(key)
    if key & TRACING and not instance.capabilities.virtual:
        kernel = reporting(op, "inplace", kernel, instance)
    call = ResolvedCall(op, key, (), {})
    operands = [p.name for p in op.schema.parameters if p.kind == OPERAND]
    if key & SCALAR_MASK:
        call.scalar = operands[0] if key & SCALAR_FIRST else operands[-1]
    names = [p.name for p in op.schema.parameters]
    passed = ", ".join(names)
    first = names[0]
    scope: dict[str, Any] = {
        "kernel": kernel, "fail": fail_inplace, "_op": op, "VIEW": VIEW,
        "declined": _compile_direct(op, key, below, last) if below else last,
    }  # fmt: skip
    lines = guard_lines(op, passed, scope, call.scalar) if key & VIEW and not key & NO_GRAD else []
    lines = [line.replace("refreshed(_op,", "refreshed_inplace(_op,") for line in lines]
    if lines:
        scope["refreshed_inplace"] = refreshed_inplace
    if key & VIEW:
        scope["check_overlap"] = check_overlap
        lines.append(f"check_overlap({first})")
        scope["check_operand_overlap"] = check_operand_overlap
        compared = op.schema.tensors[1:] if is_exclusive(op) else ()
        others = [p.name for p in compared if p.kind in (TENSOR, OPERAND) and p.name != call.scalar]
        lines += [f"check_operand_overlap({first}, {n})" for n in others]
    arguments = ", ".join(payload_argument(p, call) for p in op.schema.parameters)
    lines += [
        f"try: _p = kernel({arguments})",
        f"except Exception as _error: fail(_op, _error, ({passed},))",
        f"if _p is NotImplemented: return declined({passed})",
        f"{first}._counter[0] += 1",
        f"return {first}",
    ]
    return build(op.name + "_", passed, lines, scope, op.name + "_")


def is_exclusive(op: Operator[..., Any]) -> bool:
    """Return whether the target must not share a part of its memory with an operand. Copies may: they read first."""
    return getattr(op.rule, "pointwise", False) and op.name != "copied"


def fail_inplace(op: Operator[..., Any], error: BaseException, args: tuple[Any, ...]) -> None:
    """As ``fail``, but also raise RuntimeError if the target would have to be broadcast."""
    try:
        shape = op.rule(op, args)
    except Exception:
        shape = None
    if shape is not None and tuple(shape) != tuple(args[0]._payload.shape):
        raise RuntimeError(
            f"{op.name}_(): output with shape {list(args[0]._payload.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        ) from None
    fail(op, error, args)


def writing(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return the in-place form that computes its result in new memory and writes it into the tensor."""
    first = op.schema.parameters[0].name
    # The operators of a composite without a derivative are recorded, and they may save the tensor that is overwritten.
    composite = op.body is not None and not op.differentiable and op.not_differentiable is None
    needs_input = composite or any(first in rule.names for rule in op.rules.values())
    recorded = composite or op.differentiable
    exclusive = is_exclusive(op)

    def inplace(*args: Any) -> Any:
        if refresh_all(args):
            return redispatch(op, args, inplace=True)
        target = args[0]
        recording = recorded and not state.bits & NO_GRAD and any(_requires_grad(a) for a in args)
        check_writable(target)
        if exclusive:
            for operand in args[1:]:
                if getattr(operand, "_counter", None) is target._counter:
                    check_operand_overlap(target, operand)
        if not recording:
            if needs_input and recorded and _writes_below(target):
                shadow = _clone(target)
                args = tuple(shadow if a is target else a for a in args)
            value = _cast(redispatch(op, args), target)
            check_inplace_shape(op, target, value)
            write(target, value._payload)
            return target
        shadow = with_node(_clone(target) if needs_input else target, target._node)
        shadow._counter = [0]
        value = _cast(redispatch(op, tuple(shadow if a is target else a for a in args)), target)
        check_inplace_shape(op, target, value)
        return write_recorded(target, value)

    return inplace


def _writes_below(target: Any) -> bool:
    """Return whether a write to a tensor of a function transform writes to the memory of the level below.

    The graph of that level may have saved the tensor that is overwritten.
    """
    instance = instance_of_key(target._keys)
    return bool(instance.depth) and not instance.immutable


def _requires_grad(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_requires_grad(v) for v in value)
    return getattr(value, "_node", None) is not None


def _cast(value: Any, target: Any) -> Any:
    if not (value._keys ^ target._keys) & DTYPE_MASK:
        return value
    if not can_cast(value.dtype, target.dtype):  # the body of a composite may determine the dtype
        raise RuntimeError(
            f"result type {value.dtype.title} can't be cast to the desired output type {target.dtype.title}"
        )
    return value.to(target.dtype)


def _clone(target: Any) -> Any:
    before = state.bits
    switch(before | NO_GRAD)
    try:
        return target.clone()
    finally:
        switch(before)
