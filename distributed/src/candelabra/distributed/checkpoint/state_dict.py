"""States of models and optimizers by the names of parameters, in shards or whole.

An optimizer numbers its parameters, and its state of a shard is a plain tensor. Here, states have the names of the
model's parameters, and are DTensors with the placements of their parameters, so that other numbers of ranks load them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._buffers import host_device
from candelabra.distributed.tensor import DTensor
from candelabra.distributed.tensor._dtensor import local_of, part_of, placed

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip


@dataclass
class StateDictOptions:
    """Options of the functions of this module.

    Attributes:
        full_state_dict: whole tensors, on every rank, in place of shards.
        cpu_offload: tensors in the memory of the host.
        strict: whether names must match when a state is set.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True


def _read(value: Any, options: StateDictOptions) -> Any:
    if isinstance(value, DTensor) and options.full_state_dict:
        value = value.full_tensor()
    if isinstance(value, Tensor) and options.cpu_offload:
        moved = value.to(host_device())
        value = placed(moved, value._splits) if isinstance(value, DTensor) else moved
    return value


def get_model_state_dict(model: Any, *, options: StateDictOptions | None = None) -> dict[str, Any]:
    """Return the state of a model: DTensors, or with ``full_state_dict`` whole tensors."""
    chosen = options or StateDictOptions()
    return {name: _read(value, chosen) for name, value in model.state_dict().items()}


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load the state of a model: shards with its own placements, or whole tensors. Return the keys that differ."""
    chosen = options or StateDictOptions()
    own = model.state_dict()
    shards = {name: _own_part(value, own[name]) if name in own else value for name, value in model_state_dict.items()}
    return model.load_state_dict(shards, strict=chosen.strict)


def _own_part(value: Any, like: Any) -> Any:
    """Return this rank's part of a whole tensor, if the state that it replaces is a part."""
    if isinstance(like, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        return placed(part_of(value.detach(), like._splits), like._splits)
    return value


# -- optimizers -------------------------------------------------------------------------------------------------------
def _names(model: Any) -> dict[int, str]:
    return {id(parameter): name for name, parameter in model.named_parameters()}


def _initialize(optimizer: Any) -> None:
    """Create the state of an optimizer that has made no step, by a step that changes nothing."""
    if optimizer.state:
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    gradients = [(p, p.grad) for group in optimizer.param_groups for p in group["params"]]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for p, _ in gradients:
        p.grad = cd.zeros_like(p) if p.requires_grad else None
    optimizer.step()
    for entry in optimizer.state.values():
        if "step" in entry:
            entry["step"] = entry["step"] * 0
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    for p, gradient in gradients:
        p.grad = gradient


def _placed_like(value: Any, parameter: Any) -> Any:
    """Return a part of a state with the placement of its parameter."""
    if isinstance(value, DTensor):
        return value
    if isinstance(parameter, DTensor) and isinstance(value, Tensor) and value.shape == parameter.to_local().shape:
        return placed(value.detach(), parameter._splits)
    return value


def _entries(model: Any, optimizer: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    names = _names(model)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield names[id(parameter)], parameter, optimizer.state.get(parameter, {})


def get_optimizer_state_dict(model: Any, optimizers: Any, *, options: StateDictOptions | None = None) -> dict[str, Any]:
    """Return the state of an optimizer, whose keys are names of the model's parameters."""
    chosen = options or StateDictOptions()
    _initialize(optimizers)
    names = _names(model)
    state = {
        name: {key: _read(_placed_like(value, parameter), chosen) for key, value in entry.items()}
        for name, parameter, entry in _entries(model, optimizers)
    }
    groups = [
        {**group, "params": [names[id(parameter)] for parameter in group["params"]]}
        for group in optimizers.param_groups
    ]
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Load the state of an optimizer from :func:`get_optimizer_state_dict`, in shards or whole.

    Raises KeyError if the state lacks a parameter of the optimizer.
    """
    _initialize(optimizers)
    saved = optim_state_dict["state"]
    for name, parameter, entry in _entries(model, optimizers):
        if name not in saved:
            raise KeyError(f"the state of the optimizer has no parameter {name!r}")
        for key, value in saved[name].items():
            like = _placed_like(entry.get(key), parameter)
            found = _own_part(value, like) if isinstance(value, Tensor) else value
            if isinstance(entry.get(key), Tensor):
                with cd.no_grad():
                    local_of(entry[key]).copy_(local_of(found))
            else:
                entry[key] = found
    for group, loaded in zip(optimizers.param_groups, optim_state_dict["param_groups"], strict=True):
        group.update({key: value for key, value in loaded.items() if key != "params"})


def get_state_dict(
    model: Any, optimizers: Any, *, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and of its optimizer."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load the states of a model and of its optimizer."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def __dir__() -> list[str]:
    return sorted(__all__)
