"""Steps 6 and 7: run on the reference device and copy back, or name the devices that have a kernel.

There are two policies, per operator or for all: ``"allow"`` (warn once per operator and device, and count) and
``"error"``. Views never fall back: a view of a copy would not see later writes.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import Instance, open_device
from candelabra._dispatch.declining import reason_of
from candelabra._invalidation import invalidate
from candelabra._plugins import registry
from candelabra._records.schema import DEVICE
from candelabra._serving import kernel_for
from candelabra.dtypes import dtype
from candelabra.errors import BackendError, FallbackWarning, UnsupportedOperator

if TYPE_CHECKING:
    from candelabra._records.record import Operator

counts: Final[Counter[tuple[str, str]]] = Counter()
"""The number of fallbacks of each (device, operator) in this process."""
_warned: Final[set[tuple[str, str]]] = set()
_lock: Final = threading.Lock()


class _FallbackPolicy:
    default: str = "allow"
    operators: dict[str, str] = {}  # noqa: RUF012 - the process-wide policy itself


def fallback_policy(op: Operator[..., Any]) -> str:
    """Return the policy of this operator, ``"allow"`` or ``"error"``."""
    return _FallbackPolicy.operators.get(op.name, _FallbackPolicy.default)


@contextmanager
def fallback(policy: str, operators: Iterable[str] = ()) -> Iterator[None]:
    """Set the fallback policy inside a block, for the named operators or by default for all."""
    if policy not in ("allow", "error"):
        raise ValueError(f'fallback() expects "allow" or "error", got {policy!r}')
    before = _FallbackPolicy.default, dict(_FallbackPolicy.operators)
    if names := list(operators):
        _FallbackPolicy.operators.update(dict.fromkeys(names, policy))
    else:
        _FallbackPolicy.default = policy
    invalidate()
    try:
        yield
    finally:
        _FallbackPolicy.default, _FallbackPolicy.operators = before
        invalidate()


def reference_device(instance: Instance) -> Instance | None:
    """Return the reference device, or None if ``instance`` is it or none is installed."""
    try:
        name = registry.reference_device()
    except BackendError:
        return None
    found = open_device(name)
    return None if found.backend is instance.backend else found


def fallback_kernel(
    op: Operator[..., Any], instance: Instance, compute: dtype, key: int, declined: bool = False
) -> Callable[..., Any] | None:
    """Return a kernel that copies payloads to the reference device, runs there, and copies the results back.

    The modes in ``key`` decide whether a contributed kernel runs there (``serving``). ``declined``: the device has a
    kernel, which has declined a call.
    """
    if op.view or instance.capabilities.virtual or not instance.capabilities.data or fallback_policy(op) == "error":
        return None
    host = reference_device(instance)
    kernel = None if host is None else kernel_for(host, op.name, compute, key)
    if host is None or kernel is None:
        return None
    several = op.schema.result is not None
    mark = (str(instance.device), op.name)
    where = f"on {mark[0]!r}"
    if declined:
        where = f"for this call {where} (it was declined: {reason_of(instance, op.name, compute)})"
    elif compute not in instance.capabilities.arithmetic:
        where = f"for {compute.name} {where}"
    parameters = op.schema.parameters

    def run(*args: Any) -> Any:
        _notice(mark, where, str(host.device))
        result = kernel(
            *[
                host.index if p.kind == DEVICE else _carry(a, instance, host)
                for p, a in zip(parameters, args, strict=True)
            ]
        )
        if several:
            return tuple(_carry(r, host, instance) for r in result)
        return _carry(result, host, instance)

    return run


def _carry(value: Any, source: Instance, target: Instance) -> Any:
    if isinstance(value, (list, tuple)) and any(_is_payload(v) for v in value):
        return [_carry(v, source, target) for v in value]
    if not _is_payload(value):
        return value
    return move_payload(value, source, target)


def _is_payload(value: Any) -> bool:
    return hasattr(value, "shape") and not isinstance(value, (int, float, complex, bool, str, dtype))


def move_payload(payload: Any, source: Instance, target: Instance) -> Any:
    """Copy a payload to another device, through the host's memory if the backends differ."""
    if source.backend is target.backend:
        return source.backend.transfer(payload, source.index, target.index)
    d = source.backend.dtype_of(payload)
    target.keys_for(d)
    if not target.capabilities.data:
        return target.backend.empty(target.index, tuple(payload.shape), d)
    return target.backend.from_host(target.index, source.backend.to_host(payload), tuple(payload.shape), d)


def _notice(mark: tuple[str, str], where: str, host: str) -> None:
    with _lock:
        counts[mark] += 1
        if mark in _warned:
            return
        _warned.add(mark)
    warnings.warn(
        f"operator {mark[1]!r} has no kernel {where} and runs on {host!r}, with copies both ways. "
        "This warning is shown once; candelabra.fallback_counts() counts fallbacks, and candelabra.fallback('error') "
        "forbids them",
        FallbackWarning,
        stacklevel=4,
    )


def fallback_counts() -> dict[tuple[str, str], int]:
    """Return ``{(device, operator): number of calls that ran on the reference device instead}``."""
    return dict(counts)


def no_kernel(
    op: Operator[..., Any], instance: Instance, compute: dtype, declined: bool = False
) -> UnsupportedOperator:
    """Return the error of step 7: operator, device, devices with a kernel, failed plugins, and possible remedies.

    ``declined``: the device has a kernel, which has declined this call.
    """
    own = instance.device.type
    having = [name for name in registry.backends_with_kernel(op.name) if name != own]
    broken = registry.failures()
    text = f"operator {op.name!r} is not available on device {str(instance.device)!r} for {compute}"
    if declined:
        text += f": its kernel declined this call ({reason_of(instance, op.name, compute)})"
    other = "other " if op.name in instance.kernels else ""
    text += (
        f". Kernels exist on: {', '.join(having)}" if having else f". No {other}installed backend has a kernel for it"
    )
    if broken:
        text += f". Plugins that failed to load: {', '.join(broken)} (see `candelabra doctor`)"
    if op.view:
        text += ". Views never fall back"
    elif instance.capabilities.virtual:
        text += ". Virtual devices never fall back"
    elif fallback_policy(op) == "error":
        text += ". The fallback policy is 'error'; candelabra.fallback('allow') lets it run on the reference device"
    if having:
        text += f". To go on: x.to({having[0]!r})" + (", whose memory is another" if op.view else "")
    return UnsupportedOperator(text)
