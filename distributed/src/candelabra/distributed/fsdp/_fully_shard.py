"""``fully_shard``, and the class of sharded modules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra import Tensor, get_default_device
from candelabra.distributed._process_group import default_group
from candelabra.distributed.device_mesh import DeviceMesh
from candelabra.distributed.fsdp._parameter_group import Owner, ParameterGroup
from candelabra.distributed.fsdp._policies import MixedPrecisionPolicy, OffloadPolicy, cast_floats
from candelabra.distributed.fsdp._state import ModuleState
from candelabra.nn.modules.container import ModuleDict, ModuleList
from candelabra.nn.modules.module import Module


class UnshardHandle:
    """The handle of ``unshard(async_op=True)``."""

    def __init__(self, group: ParameterGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Return once the parameters are gathered."""
        if self._group is not None:
            self._group.gather()


class FSDPModule:
    """The methods of a module after ``fully_shard``."""

    _fsdp_state: ModuleState
    _fsdp_policy: MixedPrecisionPolicy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Gather the parameters, compute the output, and free them."""
        policy = self._fsdp_policy
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            args, kwargs = cast_floats((args, kwargs), policy.param_dtype)
        with self._fsdp_state.forward():
            out = super().__call__(*args, **kwargs)  # type: ignore[misc]
        return out if policy.output_dtype is None else cast_floats(out, policy.output_dtype)

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters now, ahead of their use. With ``async_op``, return a handle to wait for."""
        group = self._fsdp_state.group
        if group is not None:
            group.prefetch()
        handle = UnshardHandle(group)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Free the gathered parameters."""
        if self._fsdp_state.group is not None:
            self._fsdp_state.group.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Let backward passes average gradients, or keep whole ones until a later pass does."""
        for state in self._states(recurse):
            if state.group is not None:
                state.group.reduces = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Choose whether parameters are freed after the forward pass, and gathered again for the backward pass."""
        for state in self._states(recurse):
            state.reshard_after_forward = reshard_after_forward

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        self.reshard()  # a state consists of shards
        super()._save_to_state_dict(destination, prefix, keep_vars)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load shards, of the module and of those inside."""
        for state in self._fsdp_state.states():
            state.module.reshard()
        return super().load_state_dict(*args, **kwargs)  # type: ignore[misc]

    def _states(self, recurse: bool) -> list[ModuleState]:
        return self._fsdp_state.states() if recurse else [self._fsdp_state]


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Tensor] | None = None,
) -> Any:
    """Divide a module's parameters, gradients and optimizer state among ranks, and return the module.

    Its parameters become DTensors, each with the rank's rows (``Shard(0)``). The module gathers them ahead of use and
    frees them afterwards; gradients are averaged and scattered in the backward pass. Call it for the parts of a model
    first, for instance for each layer, and for the model at last: each call gathers together what the calls before have
    left. Create the optimizer afterwards. The ranks' parameters must be equal.

    Args:
        module: changed in place; its class gets the methods of :class:`FSDPModule`.
        mesh: of one dim; or of two, of which the first has replicas and the second shards. By default all ranks.
        reshard_after_forward: whether to free the parameters after the forward pass, and to gather them again for the
            backward pass; by default True.
        mp_policy: the dtypes, see :class:`MixedPrecisionPolicy`.
        ignored_params: parameters that stay as they are.
        shard_placement_fn: must be None: dim 0 is divided.
        offload_policy: must be None, or an :class:`OffloadPolicy`.

    Raises:
        ValueError: the module is a container without a forward pass, or is sharded already; the mesh has more than two
            dims; parameters of one call have different dtypes.
        NotImplementedError: ``shard_placement_fn``.
    """
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard: shard_placement_fn is not supported: dim 0 of parameters is divided")
    if isinstance(module, (ModuleList, ModuleDict)) or not isinstance(module, Module):
        raise ValueError(
            f"fully_shard does not support containers that do not implement forward: {type(module).__name__}"
        )
    if isinstance(module, FSDPModule):
        raise ValueError(f"fully_shard has already been applied to {type(module).__name__}")
    if mesh is None:
        world = default_group()  # of which no second group is needed
        mesh = DeviceMesh(_device_type(module), list(world.ranks), _groups=[world])
    if mesh.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    policy = MixedPrecisionPolicy() if mp_policy is None else mp_policy
    owned = _owned_by(module, {id(p) for p in ignored_params or ()})
    if len({(p.dtype, p.device) for p, _ in owned}) > 1:
        kinds = ", ".join(sorted({f"{p.dtype} on {p.device}" for p, _ in owned}))
        raise ValueError(f"fully_shard expects parameters of one dtype and device in each call, got {kinds}")
    group = ParameterGroup(owned, mesh, policy) if owned else None
    cls = type(module)
    module.__class__ = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    module._fsdp_policy = policy
    module._fsdp_state = ModuleState(module, group, reshard_after_forward is not False)
    return module


def _device_type(module: Any) -> str:
    """Return the type of the device of a module's parameters, or of new tensors if it has none."""
    first = next(module.parameters(), None)
    return str((get_default_device() if first is None else first.device).type)


def _owned_by(module: Any, ignored: set[int]) -> list[tuple[Tensor, list[Owner]]]:
    """Return the parameters that no call before has divided, with all modules that have them."""
    found: dict[int, tuple[Tensor, list[Owner]]] = {}
    taken = {
        id(shard) for inner in module.modules() if isinstance(inner, FSDPModule) and inner._fsdp_state.group is not None
        for shard in inner._fsdp_state.group.shards
    }  # fmt: skip
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None and id(parameter) not in ignored | taken:
                found.setdefault(id(parameter), (parameter, []))[1].append(Owner(owner, name))
    return list(found.values())
