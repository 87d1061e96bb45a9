"""Lazy modules: modules that learn the shapes of their parameters from their first input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import no_grad
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]

if TYPE_CHECKING:
    Base = Module
else:
    Base = object


class LazyModuleMixin(Base):
    """What a lazy module adds to the module that it becomes, which is the next base class.

    A subclass assigns :class:`~candelabra.nn.parameter.UninitializedParameter` and ``UninitializedBuffer`` in its
    constructor, and gives them shapes in :meth:`initialize_parameters`, which has the arguments of ``forward``. The
    first call runs it. Then the module is of the class ``cls_to_become``, unless that is None. Create the optimizer
    after the first call, or after loading a state: until then the parameters cannot be computed with.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self.register_load_state_dict_pre_hook(_materialize_from_state)
        self._initialize_hook = self.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give shapes and values to the parameters, from the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether some parameter or buffer has no shape yet."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # Uninitialized tensors cannot be detached, so the state has the tensors themselves.
        buffers = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        for name, tensor in (*self._parameters.items(), *buffers.items()):
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )


def _materialize_from_state(module: Any, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Give the module's uninitialized tensors the shapes of those that are loaded. It is a hook, run before loading."""
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        loaded = state_dict.get(prefix + name)
        if is_lazy(tensor) and loaded is not None and not is_lazy(loaded):
            with no_grad():
                tensor.materialize(loaded.shape)


def _infer_parameters(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Initialize the module and make it an ordinary one. It is a hook, run before the first ``forward``."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def __dir__() -> list[str]:
    return sorted(__all__)
