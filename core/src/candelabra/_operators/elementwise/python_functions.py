"""``apply_``, ``map_`` and ``map2_``, which call a Python function for each element. They are slow and not
differentiable.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@public(is_function=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by ``callable(element)``."""
    return _replace("apply_", callable, input)


@public(is_function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by ``callable(element, element of tensor)``; ``tensor`` broadcasts."""
    return _replace("map_", callable, input, tensor)


@public(is_function=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by ``callable(element, element of x, element of y)``; ``x`` and ``y`` broadcast."""
    return _replace("map2_", callable, input, x, y)


def _replace(name: str, function: Callable[..., Any], input: Tensor, *others: Tensor) -> Tensor:
    if any(t.requires_grad for t in (input, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    flat = [t.expand(input.shape).reshape(-1).tolist() for t in (input, *others)]
    values = [function(*elements) for elements in zip(*flat, strict=True)]
    return input.copy_(input.new_tensor(values).reshape(input.shape))
