"""Functionality layers, which run between a call and its kernel.

A layer (a profiler, a checker, a tracer, or one of a vendor) is one bit of the key. While the bit is in the thread's
mode (``with layer:``) or in a tensor's keys, every operator that the layer serves goes through its handler, which takes
Tensors and ``next``, the function below it. While a handler runs, its bit is off in the thread's mode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._invalidation import invalidate
from candelabra._keys import LAYER_LIMIT, LAYER_SHIFT, state, switch

if TYPE_CHECKING:
    from candelabra._records.record import Operator

Handler = Callable[..., Any]
"""``handler(op, next, *args)``: ``args`` are positional and canonical."""

_layers: Final[dict[int, Layer]] = {}
_lock: Final = threading.Lock()


class _Outer(threading.local):
    """The mode bits outside each active ``with layer:`` of a thread, innermost first."""

    bits: tuple[int, Any] | None = None


class Layer:
    """One functionality layer. The layer that was created last runs first; the bit of a removed layer is reused.

    ``handler`` serves every operator that has no handler of its own (see ``register``). An operator without a handler
    skips the layer.
    """

    def __init__(self, name: str, handler: Handler | None = None) -> None:
        with _lock:
            free = [b for b in range(LAYER_LIMIT) if 1 << (LAYER_SHIFT + b) not in _layers]
            if not free:
                raise RuntimeError(f"cannot create layer {name!r}: the maximum of {LAYER_LIMIT} layers exists already")
            self.name = name
            self.bit: Final = 1 << (LAYER_SHIFT + free[0])
            self.handler = handler
            self.handlers: dict[str, Handler] = {}
            self._outer = _Outer()
            _layers[self.bit] = self
        journal.note(self.remove)
        invalidate()

    def register(self, operator: Operator[..., Any] | str, handler: Handler) -> None:
        """Give one operator a handler of its own."""
        self.handlers[operator if isinstance(operator, str) else operator.name] = handler
        invalidate()

    def handler_for(self, op: Operator[..., Any], inplace: bool) -> Handler | None:
        """Return the handler that serves an operator, or None: the operator then skips the layer."""
        return self.handlers.get(op.name, self.handler)

    def remove(self) -> None:
        """Remove the layer and free its bit."""
        _layers.pop(self.bit, None)
        invalidate()

    def __enter__(self) -> Layer:
        self._outer.bits = (state.bits, self._outer.bits)
        switch(state.bits | self.bit)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._outer.bits is not None
        before, self._outer.bits = self._outer.bits
        switch(before)


class Bound:
    """A layer's handler, bound to an operator and to the function below the layer."""

    def __init__(self, layer: Layer, function: Callable[..., Any]) -> None:
        self.name = layer.name
        self.function = function


def layers_of_key(key: int) -> list[Layer]:
    """Return the layers whose bits are in a key, in the order in which they run."""
    return [_layers[bit] for bit in sorted((b for b in _layers if key & b), reverse=True)]


def layer_for(op: Operator[..., Any], key: int, inplace: bool) -> Bound | None:
    """Return the highest layer in ``key`` that serves ``op``, or None."""
    for bit in sorted((b for b in _layers if key & b), reverse=True):
        layer = _layers[bit]
        handler = layer.handler_for(op, inplace)
        if handler is not None:
            return Bound(layer, _bind(op, layer, handler, key & ~bit, inplace))
    return None


def _bind(op: Operator[..., Any], layer: Layer, handler: Handler, below: int, inplace: bool) -> Callable[..., Any]:
    table = op.inplace_table if inplace else op.table
    bit = layer.bit

    def through(*args: Any) -> Any:
        def next(*args: Any) -> Any:
            return table[below](*args)

        before = state.bits
        switch(before & ~bit)
        try:
            return handler(op, next, *args)
        finally:
            switch(before)

    return through
