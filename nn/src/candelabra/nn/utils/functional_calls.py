"""Modules as functions of their parameters, ensembles of modules, and batch norms without running statistics.

``candelabra.func`` has them, as ``torch.func`` has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn.modules.batchnorm import _BatchNorm
from candelabra.nn.modules.module import Module
from candelabra.nn.utils.stateless import call_with

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors of one or several dictionaries in place of its own parameters and buffers.

    ``args``: a tuple of arguments, or the only one. ``tie_weights``: a tensor that the module has under several names
    is replaced under all of them. ``strict``: the dictionaries must have all names. What the module assigns to these
    names is not kept. As ``torch.func.functional_call``.
    Raises ``ValueError`` for anything but dictionaries, and if two of them have the same name.
    """
    tensors: dict[str, Tensor] = {}
    given = parameter_and_buffer_dicts
    if not isinstance(given, (dict, list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    for one in [given] if isinstance(given, dict) else given:
        if not isinstance(one, dict):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        repeated = sorted(tensors.keys() & one.keys())
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        tensors.update(one)
    return call_with(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules of one class, stacked along a new first dim.

    With ``vmap`` and :func:`functional_call` the modules then run together, as an ensemble. The stacked parameters are
    leaves that require grad if the modules' own do. As ``torch.func.stack_module_state``.
    Raises ``RuntimeError`` for no module, and for modules of different classes, modes or ``requires_grad``.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stacked(name, [one[name] for one in parameters]) for name in parameters[0]},
        {name: _stacked(name, [one[name] for one in buffers]) for name in buffers[0]},
    )


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Make all batch norms of a module use the statistics of their batch, without running ones, and return the module.

    Under ``vmap``, running statistics cannot be written, as all examples share them. As
    ``torch.func.replace_all_batch_norm_modules_``.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _stacked(name: str, tensors: Sequence[Any]) -> Tensor:
    wanted = {t.requires_grad for t in tensors}
    if len(wanted) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    with candelabra.no_grad():
        result: Tensor = candelabra.stack([t.detach() for t in tensors])
    return result.requires_grad_() if wanted.pop() else result


def __dir__() -> list[str]:
    return sorted(__all__)
