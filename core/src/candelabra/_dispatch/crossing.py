"""Step 1: a call with tensors on several devices.

A 0-d tensor of the reference device may be combined with tensors of another device: it acts as a number. Operators that
copy between devices (``copy_``, ``to``) do not reach this step. Any other call raises an error that names each
argument's device and the ``.to(…)`` that corrects it, or moves the tensors if :func:`transfers` allows it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance
from candelabra._dispatch.key import map_tensors, redispatch
from candelabra._records.schema import INDEX, INDICES, LIST, MASK
from candelabra._tensor import Tensor
from candelabra.errors import DeviceMismatch

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class _TransferPolicy(threading.local):
    value: str = "error"


_policy: Final = _TransferPolicy()


@contextmanager
def transfers(policy: str) -> Iterator[None]:
    """Set the policy of this thread for calls with tensors on several devices: ``"error"``, ``"warn"`` or ``"move"``.

    ``"move"`` moves all tensors to the device of the first tensor with dimensions. ``"warn"`` does the same and warns.
    """
    if policy not in ("error", "warn", "move"):
        raise ValueError(f'transfers() expects "error", "warn" or "move", got {policy!r}')
    before = _policy.value
    _policy.value = policy
    try:
        yield
    finally:
        _policy.value = before


def cross_device(op: Operator[..., Any], inplace: bool) -> Callable[..., Any]:
    """Return a function that checks the devices of the arguments at each call."""

    def call(*args: Any) -> Any:
        located = named_devices(op, args)
        target = _target(located)
        movable = all(instance is target or _is_number(t, kind, instance) for _, t, kind, instance in located)
        if inplace and located[0][3] is not target:
            movable = False
        if not movable:
            text = mismatch(op, located, target)
            if _policy.value == "error" or (inplace and located[0][3] is not target):
                raise DeviceMismatch(text)
            if _policy.value == "warn":
                warnings.warn(f"{text} (moved, since transfers('warn') is on)", UserWarning, stacklevel=3)
        moved = map_tensors(op, args, lambda t, _: t if t._instance is target else t.to(target.device))
        return redispatch(op, moved, inplace)

    return call


Located = list[tuple[str, Any, str, Instance]]


def named_devices(op: Operator[..., Any], args: tuple[Any, ...]) -> Located:
    """Return (argument's name, tensor, kind, device) of every tensor in a call."""
    located: Located = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if isinstance(value, Tensor):
            located.append((p.name, value, p.kind, value._instance))
        elif p.kind in (LIST, INDICES):
            located += [(f"{p.name}[{i}]", t, p.kind, t._instance) for i, t in enumerate(value) if t is not None]
    return located


def _target(located: Located) -> Instance:
    """Return the device of the first data tensor with dimensions, else of the first that is not on the host."""
    for _, tensor, kind, instance in located:
        if tensor._payload.shape and kind not in (INDEX, MASK, INDICES):
            return instance
    return next((i for *_, i in located if not i.capabilities.host), located[0][3])


def _is_number(tensor: Any, kind: str, instance: Instance) -> bool:
    if not instance.capabilities.host:
        return False
    return not tensor._payload.shape or kind in (INDEX, INDICES, MASK)


def mismatch(op: Operator[..., Any], located: Located, target: Instance) -> str:
    """Return the text of the error."""
    devices = ", ".join(f"{name!r} on {instance.device}" for name, _, _, instance in located)
    cure = ", ".join(f"{name}.to('{target.device}')" for name, _, _, instance in located if instance is not target)
    return (
        f"{op.name}(): Expected all tensors to be on the same device, but found {devices}. Move them: {cure}; or allow "
        "it with candelabra.transfers('move')"
    )
