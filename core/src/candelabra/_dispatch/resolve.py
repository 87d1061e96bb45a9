"""Resolve a miss of a dispatch table: decide, once per operator and key, which function serves the call.

The numbered steps of :func:`resolution` are all of dispatch. Each returns a function of the operator's positional,
canonical arguments; ``candelabra explain`` prints the step that did (:class:`Resolution`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple
from candelabra._codegen.adapters import ResolvedCall, compile_adapter
from candelabra._codegen.parameters import passed_on
from candelabra._codegen.source import build
from candelabra._device import Instance, instance_of_key, instances_of_key
from candelabra._dispatch.adopting import adopting, innermost_of_key
from candelabra._dispatch.crossing import cross_device
from candelabra._dispatch.declining import note
from candelabra._dispatch.deferring import deferring
from candelabra._dispatch.failure import check, fail
from candelabra._dispatch.fallback import fallback_kernel, no_kernel
from candelabra._dispatch.inplace import OF_BODY, compile_inplace
from candelabra._dispatch.layers import layer_for
from candelabra._dispatch.layouts import operator_of_layout
from candelabra._dispatch.ordered import ordered_kernel
from candelabra._dispatch.overriding import overriding
from candelabra._dispatch.promote import casting, promoting
from candelabra._dispatch.tracing import reporting
from candelabra._dispatch.viewing import strided_view_kernel
from candelabra._keys import (
    AUTOGRAD,
    DEFERRED,
    DEVICE_SHIFT,
    FUNCTION_MODE,
    INFERENCE,
    INFERENCE_MODE,
    KERNEL_MODES,
    LAYER_MASK,
    LAYOUT_MASK,
    NO_GRAD,
    NO_OVERRIDE,
    OVERRIDE,
    SCALAR_FIRST,
    SCALAR_MASK,
    SCALAR_SHIFT,
    TRACING,
    VIEW,
)
from candelabra._records.accepts import refusal, refused_operand
from candelabra._records.promotion import highest, unpromoted
from candelabra._records.schema import OPERAND
from candelabra._serving import KernelLink, serving
from candelabra._switches import switches
from candelabra.dtypes import ALL, BY_BIT, DTYPE_MASK, FLOATING, INTEGER, dtype
from candelabra.errors import UnsupportedOperator

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class Resolution(NamedTuple):
    """The function that serves a key, the route of the step that found it, and a sentence about it."""

    function: Callable[..., Any]
    route: str
    reason: str


def resolution(op: Operator[..., Any], key: int, inplace: bool = False, declined: bool = False) -> Resolution:
    """Return the function that serves ``op`` for ``key``, with its route.

    With ``declined``, return the one that serves a call that the kernel of step 4 declines.
    """
    # 0. Calls that no kernel serves: function modes and classes that define __torch_function__, unless disabled.
    if key & (OVERRIDE | NO_OVERRIDE | FUNCTION_MODE):
        if key & FUNCTION_MODE or key & (OVERRIDE | NO_OVERRIDE) == OVERRIDE:
            return Resolution(overriding(op, inplace), "override", "handled by __torch_function__")
        key &= ~(OVERRIDE | NO_OVERRIDE)
    #    Sparse tensors: functions that call operators of their indices and values, with all the steps below.
    if key & LAYOUT_MASK:
        function = operator_of_layout(op, key, inplace)
        return Resolution(function, "layout", "operators of the indices and values are dispatched")
    # 1. Tensors of two device instances: a function that checks the arguments at each call, or adopts them in a level.
    devices = key >> DEVICE_SHIFT
    if devices & (devices - 1) and not key & DEFERRED:
        names = ", ".join(str(i.device) for i in instances_of_key(key))
        inner = innermost_of_key(key)
        if inner is not None:
            return Resolution(adopting(op, inner, inplace), "adoption", f"tensors of {names} enter the innermost level")
        return Resolution(cross_device(op, inplace), "cross-device", f"tensors on {names}")
    # 2. The highest functionality layer with a kernel for this operator.
    if key & LAYER_MASK:
        layer = layer_for(op, key, inplace)
        if layer is not None:
            return Resolution(layer.function, "layer", f"functionality layer {layer.name!r}")
        key &= ~LAYER_MASK
    # 2b. A block of batching(), below the layers: the call is collected, and runs later.
    if key & DEFERRED:
        return Resolution(deferring(op, key, inplace), "deferred", "collected in the block of batching()")
    if not devices:
        raise TypeError(f"{op.name}(): at least one argument must be a Tensor, all are numbers")
    # 3. Mixed dtypes, or a scalar of a higher category: promote, so that kernels get one dtype.
    compute = _compute_dtype(op, key)
    words = refused_operand(op, key)
    if inplace and op.inplace_body is not None and compute is not None:
        words = words or refusal(op, op.promote(compute))
    if words is not None:
        raise NotImplementedError(words)
    if inplace and op.inplace_body is not None:
        body = by_position(op, op.inplace_body)
        if compute is None or not op.inplace or op.promote(compute) is not compute:
            return Resolution(body, "composite", OF_BODY)
        function, reason = compile_inplace(op, key, compute, instance_of_key(key), body)
        return Resolution(function, "composite" if function is body else "native", reason)
    if compute is None or op.promote(compute) is not compute:
        return Resolution(promoting(op, inplace), "promotion", "operands are cast to one dtype first")
    instance = instance_of_key(key)
    words = refusal(op, compute)
    if words is not None and op.schema.named("dtype") is None:
        raise NotImplementedError(words)
    if words is not None:
        return Resolution(casting(op, words), "promotion", "the input is cast to the dtype that is named first")
    if inplace:
        function, reason = compile_inplace(op, key, compute, instance)
        return Resolution(function, "native", reason)
    return _served(op, key, compute, instance, [] if declined else None, declined)


class WritingKernel(NamedTuple):
    """A kernel that may write its result into a tensor with these keys, if it has a function ``into``."""

    kernel: Callable[..., Any]
    keys: int


PLAIN_KEYS: Final = DTYPE_MASK | SCALAR_MASK | SCALAR_FIRST | VIEW | AUTOGRAD | NO_GRAD | KERNEL_MODES
"""The keys, besides a device's, of calls that nothing but a kernel sees, unless they are recorded."""


def writing_kernel(op: Operator[..., Any], key: int) -> WritingKernel | None:
    """Return the kernel that serves calls with ``out=`` whose tensors, out included, have these keys.

    None: the result is computed in new memory, and copied.
    """
    devices = key >> DEVICE_SHIFT
    others = key & ((1 << DEVICE_SHIFT) - 1) & ~PLAIN_KEYS
    if others or not devices or devices & (devices - 1) or (key & AUTOGRAD and not key & NO_GRAD):
        return None
    compute, instance = _compute_dtype(op, key), instance_of_key(key)
    if compute is None or op.promote(compute) is not compute or refused_operand(op, key) or refusal(op, compute):
        return None
    if instance.immutable or instance.lazy or instance.capabilities.virtual or not _computes(instance, compute):
        return None
    kernels = serving(instance, op.name, compute, key)
    pointwise = getattr(op.rule, "pointwise", False) and len(op.results) == 1
    if not kernels or not pointwise or op.name in instance.capabilities.nondeterministic:
        return None
    return WritingKernel(kernels[0].kernel, instance.keys_for(op.results[0](compute)))


class Declined:
    """The function for calls that a kernel declines. It resolves the remaining steps at the first such call.

    ``below``: the kernels that served before the one that declines, if it is contributed.
    """

    def __init__(
        self, op: Operator[..., Any], key: int, compute: dtype, instance: Instance, below: list[KernelLink]
    ) -> None:
        self.given = op, key, compute, instance, below
        self.function: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        if self.function is None:
            op, _, compute, instance, below = self.given
            if not below:
                note(instance, op.name, compute)
            try:
                self.function = _served(*self.given, declined=not below).function
            except UnsupportedOperator:
                check(op, args)  # the kernel may have declined arguments that the record refuses
                raise
        return self.function(*args)


def _served(
    op: Operator[..., Any],
    key: int,
    compute: dtype,
    instance: Instance,
    kernels: list[KernelLink] | None = None,
    declined: bool = False,
) -> Resolution:
    """Resolve steps 4 to 7. ``kernels``: the kernels that may serve, without those that have declined the call;
    ``declined``: all have.
    """
    wants_grad = bool(key & AUTOGRAD) and not key & NO_GRAD
    name = str(instance.device)
    call = ResolvedCall(op, key, output_keys(op, key, compute, instance), _keymap(op, key, instance))
    call.recording = wants_grad and op.differentiable
    call.differentiable = tuple(bool(_dtype_of(k).category >= FLOATING) for k in call.keys)
    if key & SCALAR_MASK:
        operands = [p.name for p in op.schema.parameters if p.kind == OPERAND]
        call.scalar = operands[0] if key & SCALAR_FIRST else operands[-1]
    if kernels is None:
        kernels = serving(instance, op.name, compute, key)
    if switches.deterministic and op.name in instance.capabilities.nondeterministic:
        _nondeterministic(op, name)
    composite_above = op.body is not None and not op.differentiable and op.not_differentiable is None
    # 4. The backend's kernel, unless autograd has to record the operators of a composite.
    if kernels and not (composite_above and wants_grad) and (op.view or _computes(instance, compute)):
        first, *below = kernels
        call.kernel = _reported(call, first.kernel, instance)
        call.declined = Declined(op, key, compute, instance, below)
        return Resolution(compile_adapter(call), "native", first.origin(op.name, instance))
    if op.view and instance.capabilities.strided:
        call.kernel = strided_view_kernel(op, instance)
        if call.kernel is not None:
            call.kernel = _reported(call, call.kernel, instance)
            return Resolution(compile_adapter(call), "strided", "computed from strides by the core")
    # 5. The composite body: above autograd, or below it if the record has a derivative of its own.
    declines = not kernels and not declined and op.name in instance.kernels
    refused = f"the kernel {op.name!r} declines {compute.name}; " if declines else ""
    if op.body is not None:
        if composite_above:
            why = (
                "inference only: the backend's override was passed over" if kernels else "its operators are dispatched"
            )
            return Resolution(by_position(op, op.body), "composite", refused + why)
        if op.ordered and key & TRACING and not instance.capabilities.virtual:
            kernel = ordered_kernel(op, by_position(op, op.body), compute, instance)
            call.kernel = reporting(op, "function", kernel, instance)
            return Resolution(compile_adapter(call), "composite", refused + "a trace has one node for all of it")
        call.kernel, call.on_tensors = op.body, True
        why = "the body runs with recording off, one derivative for all of it"
        return Resolution(compile_adapter(call), "composite", refused + why)
    # 6. The fallback policy.
    call.kernel = fallback_kernel(op, instance, compute, key, declined)
    if call.kernel is not None:
        call.kernel = _reported(call, call.kernel, instance)
        why = refused or f"{name} has no kernel {op.name!r}; "
        return Resolution(compile_adapter(call), "fallback", f"{why}the reference device has")
    # 7. No device serves it.
    raise no_kernel(op, instance, compute, declined)


def _reported(call: ResolvedCall, kernel: Callable[..., Any], instance: Instance) -> Callable[..., Any]:
    """Return a kernel, in a trace one that reports its calls. Virtual devices do not: those below them do."""
    if not call.key & TRACING or instance.capabilities.virtual:
        return kernel
    return reporting(call.operator, "function", kernel, instance)


def _nondeterministic(op: Operator[..., Any], device: str) -> None:
    """Warn of an operator whose results may differ between runs, or refuse it."""
    words = (
        f"{op.title} does not have a deterministic implementation on {device}, but you set "
        "'candelabra.use_deterministic_algorithms(True)'"
    )
    if not switches.warn_only:
        raise RuntimeError(f"{words}. Move its tensors to another device, or pass warn_only=True")
    warnings.warn(words, UserWarning, stacklevel=2)


def output_keys(op: Operator[..., Any], key: int, compute: dtype, instance: Instance) -> tuple[int, ...]:
    """Return the keys of each output: those of its dtype, with the inference mark in inference mode."""
    mark = _inference_mark(op, key)
    return tuple(instance.keys_for(rule(compute)) | mark for rule in op.results)


def _inference_mark(op: Operator[..., Any], key: int) -> int:
    """Return the inference mark of the results: set in inference mode and for views of inference tensors."""
    return INFERENCE if key & INFERENCE_MODE or (op.view and key & INFERENCE) else 0


def _keymap(op: Operator[..., Any], key: int, instance: Instance) -> dict[dtype, int]:
    return _CheckedKeys(instance, _inference_mark(op, key))


class _CheckedKeys(dict[Any, int]):
    """``{dtype: keys}``. A dtype that the device does not support raises UnsupportedDType."""

    def __init__(self, instance: Instance, mark: int) -> None:
        self.instance = instance
        self.update({d: k | mark for d, k in instance.keys.items()})

    def __missing__(self, d: Any) -> int:
        return self.instance.keys_for(d)


def _compute_dtype(op: Operator[..., Any], key: int) -> dtype | None:
    """Return the dtype of the tensors, or None if there are several or a scalar is of a higher category."""
    bits = key & DTYPE_MASK
    if op.promote is unpromoted:
        return BY_BIT[bits & -bits] if bits else ALL[0]
    if op.promote is highest:
        return BY_BIT[1 << bits.bit_length() - 1] if bits else ALL[0]
    if not bits:  # numbers with a mask, a factory, or a call with index tensors only
        return None if key & SCALAR_MASK else ALL[0]
    if bits not in BY_BIT:
        return None
    found = BY_BIT[bits]
    scalars = (key & SCALAR_MASK) >> SCALAR_SHIFT
    if scalars and scalars.bit_length() - 1 > found.category:
        return None
    return found


def _dtype_of(keys: int) -> dtype:
    return BY_BIT[keys & DTYPE_MASK]


def _computes(instance: Instance, d: dtype) -> bool:
    capabilities = instance.capabilities
    return d in capabilities.arithmetic or (d in capabilities.storage and d.category <= INTEGER)


def by_position(op: Operator[..., Any], body: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a body so that it takes all arguments by position, also keyword-only and variadic ones.

    If the record has a check of values and the body raises, the rule and the check say what is wrong.
    """
    parameters = op.schema.parameters
    if op.check is None and not any(p.keyword_only or p.variadic for p in parameters):
        return body
    names, call = ", ".join(p.name for p in parameters), f"body({', '.join(passed_on(p) for p in parameters)})"
    lines = [f"return {call}"]
    if op.check is not None:
        lines = [f"try: return {call}", f"except Exception as _error: fail(_op, _error, ({names},))"]
    return build(op.name, names, lines, {"body": body, "fail": fail, "_op": op}, f"{op.name} composite")
