"""Questions about a tensor that have one answer, and functions over whole tensors in Python.

What is lazy, sparse, quantised or nested in PyTorch does not exist here: the questions are answered all the same, so
that programs which ask them run.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._operators.fronts.registry import front

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _check(name: str, input: Any, position: int = 1) -> None:
    if not hasattr(input, "_payload"):
        argument = ("input", "other")[position - 1]
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind_of(input)}")


# -- dtype and state --------------------------------------------------------------------------------------------------
@front(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    _check("is_signed", input)
    return input.is_signed()


@front(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    _check("is_inference", input)
    return input.is_inference()


@front(method=False)
def typename(obj: Any) -> str:
    """The name of a tensor's type, as :meth:`Tensor.type` gives it; of anything else, its type's with the module."""
    if hasattr(obj, "_payload"):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@front
def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy."""
    _check("is_conj", input)
    return False


@front
def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy."""
    _check("is_neg", input)
    return False


def _declare_never(name: str, what: str) -> None:
    def never(input: Tensor) -> bool:
        return False

    never.__name__ = never.__qualname__ = name
    never.__doc__ = f"False: there are no {what} tensors."
    front(function=False, is_property=True)(never)


for _name, _what in {
    "is_sparse": "sparse", "is_sparse_csr": "sparse", "is_quantized": "quantised", "is_nested": "nested",
    "is_mkldnn": "opaque", "is_meta": "data-less",
}.items():  # fmt: skip
    _declare_never(_name, _what)


# -- functions of methods ---------------------------------------------------------------------------------------------
@front(method=False)
def detach_(input: Tensor) -> Tensor:
    """As the method ``detach_``."""
    return input.detach_()


@front(method=False)
def get_device(input: Tensor) -> int:
    """As the method ``get_device``."""
    _check("get_device", input)
    return input.get_device()


@front(function=False, method="__rdiv__")
def divided(input: Tensor, other: Any) -> Tensor:
    """``other / input``, under the name that it had in Python 2."""
    return input.reciprocal() * other


# -- a Python function at every element -------------------------------------------------------------------------------
@front(function=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Every element replaced by ``callable(element)``. Slow, and not differentiable."""
    return _mapped("apply_", callable, input)


@front(function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Every element replaced by ``callable(element, element of tensor)``; ``tensor`` broadcasts."""
    return _mapped("map_", callable, input, tensor)


@front(function=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Every element replaced by ``callable(element, element of x, element of y)``; ``x`` and ``y`` broadcast."""
    return _mapped("map2_", callable, input, x, y)


def _mapped(name: str, function: Callable[..., Any], input: Tensor, *others: Tensor) -> Tensor:
    from candelabra._operators.from_data import tensor

    if any(t.requires_grad for t in (input, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    flat = [t.expand(input.shape).reshape(-1).tolist() for t in (input, *others)]
    values = [function(*elements) for elements in zip(*flat, strict=True)]
    made = tensor(values, dtype=input.dtype, device=input.device).reshape(input.shape)
    return input.copy_(made)
