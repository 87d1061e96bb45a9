"""Calls inside a block of ``candelabra.batching``: the block collects them, and runs groups of equal ones as one call.

While a block is active, its bit is in the thread's mode. The results of collected calls have the same bit in their keys
until they are computed, so that every use of such a tensor comes here, or to ``Tensor._fresh``. What collects is in
``candelabra._transforms.collecting``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import instance_of_key, instances_of_key
from candelabra._dispatch.adopting import innermost_of_key
from candelabra._dispatch.key import redispatch
from candelabra._keys import DEFERRED, DEVICE_SHIFT, state, switch
from candelabra._records.schema import DEVICE
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._records.record import Operator


class _Active(threading.local):
    """The block of a thread that collects calls, if there is one."""

    collector: Any = None


active_block: Final = _Active()
Compile = Callable[["Operator[..., Any]", int, "Instance"], Callable[..., Any]]
_compile: Final[list[Compile]] = []


def serve_collected(compile: Compile) -> None:
    """Set the function that makes the functions that collect calls."""
    _compile[:] = [compile]


def deferring(op: Operator[..., Any], key: int, inplace: bool) -> Callable[..., Any]:
    """Return the function that serves the keys with the bit ``DEFERRED``: it collects the call, or runs it at once."""
    instance = result_instance(key)
    if instance is None or op.data_dependent or any(p.kind == DEVICE for p in op.schema.parameters):
        return lambda *args: run_now(op, args, inplace)
    if not inplace:
        return _compile[0](op, key, instance)
    depth, bit = instance.depth, instance.bit

    def write(*args: Any) -> Any:
        collector = active_block.collector
        if collector is None or depth > collector.depth:
            return run_now(op, args, inplace=True)
        return collector.write(op, args, bit)

    return write


def result_instance(key: int) -> Instance | None:
    """Return the device, or the innermost level, of a call's results. None: it has none, or several devices."""
    devices = key >> DEVICE_SHIFT
    if not devices:
        return None
    found = instance_of_key(key) if not devices & (devices - 1) else innermost_of_key(key)
    if found is not None and any(i.depth == found.depth and i is not found for i in instances_of_key(key)):
        return None
    return found


def run_now(op: Operator[..., Any], args: tuple[Any, ...], inplace: bool = False) -> Any:
    """Compute the deferred tensors of a call, and dispatch it outside the block."""
    settle(args)
    before = state.bits
    switch(before & ~DEFERRED)
    try:
        return redispatch(op, args, inplace)
    finally:
        switch(before)


def views_of(op: Operator[..., Any], tensor: Tensor, arguments: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the views of a deferred tensor by an operator, one for each argument."""
    collector = active_block.collector
    if collector is None:
        return tuple([op.canonical(tensor, each) for each in arguments])
    found: tuple[Tensor, ...] = collector.views(op, tensor, arguments)
    return found


def changes_state() -> None:
    """Tell the block of this thread that something which is no operator changes a tensor, or a generator."""
    if active_block.collector is not None:
        active_block.collector.changes_state()


def shares_memory() -> None:
    """Tell the block of this thread that memory of a tensor becomes visible outside of candelabra."""
    if active_block.collector is not None:
        active_block.collector.shares_memory()


def settle(values: Sequence[Any]) -> None:
    """Compute the deferred tensors among values, and in the lists among them."""
    for value in values:
        if isinstance(value, Tensor):
            value._fresh()
        elif isinstance(value, (tuple, list)):
            settle(value)


def deferred_rows(op: Operator[..., Any]) -> Callable[[Sequence[tuple[Any, ...]], tuple[Any, ...]], None]:
    """Return the form over rows inside a block: the collected calls run before it writes."""

    def call(rows: Sequence[tuple[Any, ...]], options: tuple[Any, ...]) -> None:
        if active_block.collector is not None:
            active_block.collector.run()
        settle(rows)
        before = state.bits
        switch(before & ~DEFERRED)
        try:
            op.over_rows(rows, *options)
        finally:
            switch(before)

    return call
