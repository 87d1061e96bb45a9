"""Names of ``torch.optim.optimizer`` that PyTorch does not document and that optimizers of other packages import."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from candelabra import Tensor, dtype, float32, float64, get_default_dtype, set_grad_enabled, view_as_real

_params_doc = "params: tensors, groups of them as dicts, or (name, tensor) pairs"
_foreach_doc = "foreach (bool, optional): accepted; all parameters are updated by one call in any case"
_fused_doc = "fused (bool, optional): accepted; all parameters are updated by one call in any case"
_capturable_doc = "capturable (bool, optional): accepted, without effect"
_differentiable_doc = "differentiable (bool, optional): record the step for autograd (default: False)"
_maximize_doc = "maximize (bool, optional): maximize the objective (default: False)"


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``step`` that is recorded for autograd if the optimizer's option ``differentiable`` is set."""

    @wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Return the number in a tensor of one element; other values are returned."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """Return a tensor without its dims of size 1; numbers and 0-d tensors are returned."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """Return ``x``: a compiled function records steps as they are."""
    return x


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Return (False, False): a program's own loop over parameters is as good here as its forms for many tensors."""
    return False, False


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """Return the dtype of step counts: float64 if it is the default dtype and the step is not fused, or float32."""
    return float64 if not is_fused and get_default_dtype() is float64 else float32


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace each complex parameter, and its gradient and state at the same index, by real views."""
    for number, parameter in enumerate(params):
        if parameter.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[number] = view_as_real(tensors[number])
