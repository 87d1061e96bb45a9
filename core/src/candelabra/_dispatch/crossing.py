"""Step 1: a call whose tensors live on several devices.

Legal are 0-d tensors of the reference device beside another device's (they act as numbers), and what moves data by
its nature (``copy_``, ``to``), which does not come here. All else is an error that names each argument's device and the
``.to(…)`` that mends it — or a move, where :func:`transfers` allows it.
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


class _Policy(threading.local):
    value: str = "error"


_policy: Final = _Policy()


@contextmanager
def transfers(policy: str) -> Iterator[None]:
    """What a call with tensors on several devices does in this thread: ``"error"``, ``"warn"`` or ``"move"``.

    ``"move"`` moves everything to the device of the first tensor that has dimensions; ``"warn"`` does so and says it.
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
    """The routine that decides at each call."""

    def call(*args: Any) -> Any:
        found = named_devices(op, args)
        target = _target(found)
        movable = all(instance is target or _is_number(t, kind, instance) for _, t, kind, instance in found)
        if inplace and found[0][3] is not target:
            movable = False
        if not movable:
            text = mismatch(op, found, target)
            if _policy.value == "error" or (inplace and found[0][3] is not target):
                raise DeviceMismatch(text)
            if _policy.value == "warn":
                warnings.warn(f"{text} (moved, since transfers('warn') is on)", UserWarning, stacklevel=3)
        moved = map_tensors(op, args, lambda t, _: t if t._instance is target else t.to(target.device))
        return redispatch(op, moved, inplace)

    return call


Found = list[tuple[str, Any, str, Instance]]


def named_devices(op: Operator[..., Any], args: tuple[Any, ...]) -> Found:
    """(argument's name, tensor, kind, device) of every tensor in a call."""
    found: Found = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if isinstance(value, Tensor):
            found.append((p.name, value, p.kind, value._instance))
        elif p.kind in (LIST, INDICES):
            found += [(f"{p.name}[{i}]", t, p.kind, t._instance) for i, t in enumerate(value) if t is not None]
    return found


def _target(found: Found) -> Instance:
    """The device of the first data tensor with dimensions, else of the first that is not the host's."""
    for _, tensor, kind, instance in found:
        if tensor._payload.shape and kind not in (INDEX, MASK, INDICES):
            return instance
    return next((i for *_, i in found if not i.capabilities.host), found[0][3])


def _is_number(tensor: Any, kind: str, instance: Instance) -> bool:
    if not instance.capabilities.host:
        return False
    return not tensor._payload.shape or kind in (INDEX, INDICES, MASK)


def mismatch(op: Operator[..., Any], found: Found, target: Instance) -> str:
    """The error's text."""
    places = ", ".join(f"{name!r} on {instance.device}" for name, _, _, instance in found)
    cure = ", ".join(f"{name}.to('{target.device}')" for name, _, _, instance in found if instance is not target)
    return (
        f"{op.name}(): Expected all tensors to be on the same device, but found {places}. Move them: {cure}; or allow "
        "it with candelabra.transfers('move')"
    )
