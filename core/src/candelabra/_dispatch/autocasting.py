"""The layer of ``autocast``: casts the arguments of the operators whose records name a list.

The layer's bit is in a thread's mode while autocast is on for a device type, so calls take no longer while it is off. A
handler casts with recorded casts and dispatches again below the layer: gradients get the dtypes of the arguments. What
an operator's composite body or kernel does is not cast again. In-place operators are never cast, as in PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance, device, instance_of_key, open_device
from candelabra._dispatch.key import map_tensors, redispatch
from candelabra._dispatch.layers import Handler, Layer
from candelabra._keys import NO_GRAD, state, switch
from candelabra.dtypes import bfloat16, dtype, float16, float32

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor


class Settings(threading.local):
    """The state of autocast in a thread. The dicts are replaced and never changed, so that they can be kept."""

    def __init__(self) -> None:
        self.enabled: dict[str, dtype] = {}
        """Device types for which autocast is on, with the lower precision."""
        self.chosen: dict[str, dtype] = {}
        """The lower precision of device types that have another than the default."""
        self.cache_enabled = True
        self.nesting = 0
        self.cached: dict[tuple[int, dtype], tuple[Tensor, int, Tensor]] = {}
        """The casts of leaves that require grad, with the leaf and its version, until the outermost context ends."""


settings: Final = Settings()


class AutocastLayer(Layer):
    """The layer. It serves the operators in a list, and keeps autocast out of the bodies of all others."""

    def handler_for(self, op: Operator[..., Any], inplace: bool) -> Handler | None:
        """Return the handler that casts, one that only continues below the layer, or None."""
        if op.autocast is not None and not inplace:
            return cast_and_call
        return call_below if op.body is not None and (inplace or op.differentiable) else None


@cache
def layer() -> AutocastLayer:
    """Return the layer, which is created at the first use of autocast and stays."""
    with journal.unrecorded():
        return AutocastLayer("autocast")


def enable(enabled: dict[str, dtype]) -> None:
    """Set the device types for which autocast is on in this thread."""
    settings.enabled = enabled
    bit = layer().bit
    switch(state.bits | bit if enabled else state.bits & ~bit)


def lower_precision(device_type: str) -> dtype:
    """Return the lower precision of a device type: float16, or bfloat16 on the host and where float16 is missing."""
    found = settings.chosen.get(device_type)
    if found is not None:
        return found
    capabilities = open_device(device(device_type)).capabilities
    return bfloat16 if capabilities.host or float16 not in capabilities.arithmetic else float16


@contextmanager
def restored(enabled: dict[str, dtype]) -> Iterator[None]:
    """Set inside the block the device types for which autocast was on elsewhere. The mode bits are the caller's."""
    outer, settings.enabled = settings.enabled, enabled
    settings.nesting += 1
    try:
        yield
    finally:
        settings.enabled = outer
        settings.nesting -= 1
        if settings.nesting == 0:
            clear_cache()


def clear_cache() -> None:
    """Release the casts of leaves that this thread keeps."""
    settings.cached.clear()


def autocast_on_host(tensor: Tensor) -> bool:
    """Return whether autocast is on for the device of a tensor and that is the host.

    For functions that are operators in PyTorch, and here no records that could name a list.
    """
    if not settings.enabled or not state.bits & layer().bit:
        return False
    instance = instance_of_key(tensor._keys)
    return instance.device.type in settings.enabled and instance.capabilities.host


def float32_on_host(tensor: Tensor) -> Tensor:
    """Return a tensor as the list ``"float32"`` casts it, if :func:`autocast_on_host`, otherwise the tensor itself."""
    return _cast(tensor, float32, instance_of_key(tensor._keys)) if autocast_on_host(tensor) else tensor


# -- handlers ---------------------------------------------------------------------------------------------------------
def call_below(op: Operator[..., Any], next: Any, *args: Any) -> Any:
    """Call the operator as it is, with autocast off for the operators in its body."""
    return next(*args)


def cast_and_call(op: Operator[..., Any], next: Any, *args: Any) -> Any:
    """Cast the arguments as the operator's list says, and call it."""
    instance = _instance(args)
    lower = settings.enabled.get(instance.device.type)
    chosen = None if lower is None else op.autocast[instance.capabilities.host]  # type: ignore[index]
    if chosen is None:
        return call_below(op, next, *args) if op.differentiable or op.body is None else _call_body(next, args)
    if chosen == "refused":
        raise RuntimeError(
            f"{op.name} is unsafe to autocast: its logarithm of a value in lower precision overflows. Use "
            f"{op.name}_with_logits, which includes the sigmoid and is safe"
        )
    if chosen == "preserved":
        return _in_first_dtype(next(*args), args[0].dtype)
    assert lower is not None
    target = lower if chosen == "lower" else float32
    if chosen == "widest":
        target = _widest(op, args, instance, lower)
    return redispatch(op, map_tensors(op, args, lambda tensor, _: _cast(tensor, target, instance)))


def _call_body(next: Any, args: tuple[Any, ...]) -> Any:
    """Call a composite above autograd, whose operators are the user's calls: autocast is on for them."""
    before = state.bits
    switch(before | layer().bit)
    try:
        return next(*args)
    finally:
        switch(before)


def _instance(args: tuple[Any, ...]) -> Instance:
    for value in args:
        first = value[0] if type(value) in (tuple, list) and value else value
        if hasattr(first, "_payload"):
            return instance_of_key(first._keys)
    raise AssertionError("an operator in a list of autocast takes a tensor")


def _eligible(tensor: Tensor, instance: Instance) -> bool:
    """Return whether autocast may cast a tensor: floating, narrower than float64, and on the device of the call."""
    d = tensor.dtype
    return d.is_floating_point and d.itemsize <= 4 and instance_of_key(tensor._keys) is instance


def _widest(op: Operator[..., Any], args: tuple[Any, ...], instance: Instance, lower: dtype) -> dtype:
    found: list[dtype] = []
    map_tensors(op, args, lambda t, _: found.append(t.dtype) if _eligible(t, instance) else None)
    return float32 if float32 in found else lower


def _cast(tensor: Tensor, target: dtype, instance: Instance) -> Tensor:
    if tensor.dtype is target or not _eligible(tensor, instance):
        return tensor
    leaf = tensor._node is not None and tensor._node.is_leaf and not tensor._is_view()
    if not leaf or target is float32 or not settings.cache_enabled or state.bits & NO_GRAD:
        return tensor.to(target)
    key = id(tensor), target
    kept = settings.cached.get(key)
    if kept is None or kept[1] != tensor._counter[0]:
        kept = settings.cached[key] = tensor, tensor._counter[0], tensor.to(target)
    return kept[2]


def _in_first_dtype(result: Any, d: dtype) -> Any:
    if not isinstance(result, tuple):
        return result.to(d)
    return type(result)(result[0].to(d), *result[1:])
