"""When a sharded module gathers its parameters: in its forward pass, and when the backward pass reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from candelabra import Tensor
from candelabra.autograd.graph import saved_tensors_hooks
from candelabra.distributed.fsdp._parameter_group import ParameterGroup
from candelabra.library import open_device


class Order:
    """The order in which the modules of one model run, by which the next one's parameters are gathered ahead."""

    def __init__(self) -> None:
        self.states: list[ModuleState] = []
        self.complete = False

    def enter(self, state: ModuleState) -> None:
        """Note the order in the first pass, and prefetch in later ones."""
        if not self.complete:
            if state not in self.states:
                self.states.append(state)
            return
        self.prefetch_neighbor(state, 1)

    def prefetch_neighbor(self, state: ModuleState, step: int) -> None:
        """Begin to gather the parameters of the module that runs after this one (``step`` 1) or before it (-1)."""
        place = self.states.index(state) + step if state in self.states else -1
        if 0 <= place < len(self.states):
            group = self.states[place].group
            if group is not None:
                group.prefetch()


class ModuleState:
    """What ``fully_shard`` adds to a module."""

    def __init__(self, module: Any, group: ParameterGroup | None, reshard_after_forward: bool) -> None:
        self.module = module
        self.group = group
        self.reshard_after_forward = reshard_after_forward
        self.order: Order | None = None
        self.held = False
        """Whether ``unshard()`` has been called, so that the next forward pass finds the parameters."""

    def states(self) -> list[ModuleState]:
        """Return this state and those of the modules inside."""
        return [module._fsdp_state for module in self.module.modules() if hasattr(module, "_fsdp_state")]

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Gather the parameters for the block, and free them afterwards."""
        is_root = self.order is None
        if is_root:  # the outermost module that is called
            order = Order()
            for state in self.states():
                state.order = order
        assert self.order is not None
        if self.group is None:
            self.order.enter(self)
            yield
        else:
            self.group.unshard()
            self.order.enter(self)
            try:
                if self.reshard_after_forward:
                    with saved_tensors_hooks(self.pack, _unpacked):
                        yield
                else:
                    yield
            finally:
                self._leave()
        if self.order.states[:1] == [self] or is_root:
            self.order.complete = True

    def _leave(self) -> None:
        assert self.group is not None
        if self.reshard_after_forward:
            self.group.reshard()

    def pack(self, tensor: Tensor) -> Any:
        """Return how to read a saved tensor later, in place of memory of a whole parameter."""
        assert self.group is not None
        place = _address(tensor)
        for index, whole in enumerate(self.group.full or ()):
            start = _address(whole)
            if place is None or start is None:
                if tensor._payload is whole._payload:
                    return self._reader(index, None)
            elif place == start and tensor.dtype is whole.dtype:
                offset = tensor.storage_offset() - whole.storage_offset()
                return self._reader(index, (tuple(tensor.shape), tuple(tensor.stride()), offset))
        return tensor

    def _reader(self, index: int, view: tuple[Any, Any, int] | None) -> Callable[[], Tensor]:
        """Return a function that gathers a parameter and returns it, or a view: shape, strides and offset."""
        group, order = self.group, self.order

        def read() -> Tensor:
            assert group is not None
            first = group.full is None
            found = group.gather()[index]
            if view is not None:
                shape, strides, offset = view
                found = found.as_strided(shape, strides, found.storage_offset() + offset)
            if first and order is not None:
                order.prefetch_neighbor(self, -1)
            return found

        return read


def _unpacked(packed: Any) -> Tensor:
    found: Tensor = packed() if callable(packed) and not isinstance(packed, Tensor) else packed
    return found


def _address(tensor: Tensor) -> int | None:
    """Return the address of a tensor's memory, or None if the device does not tell."""
    capabilities = open_device(tensor.device).backend.capabilities
    return tensor.untyped_storage().data_ptr() if capabilities.host and capabilities.strided else None
