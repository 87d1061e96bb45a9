"""Questions about a tensor that have one answer, and functions over whole tensors in Python.

What is lazy, sparse, quantised or nested in PyTorch does not exist here: the questions are answered all the same, so
that programs which ask them run.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _check(name: str, input: Any, position: int = 1) -> None:
    if not hasattr(input, "_payload"):
        argument = ("input", "other")[position - 1]
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind_of(input)}")


# -- dtype and state --------------------------------------------------------------------------------------------------
@public(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    _check("is_signed", input)
    return input.is_signed()


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    _check("is_inference", input)
    return input.is_inference()


@public(method=False)
def typename(obj: Any) -> str:
    """The name of a tensor's type, as :meth:`Tensor.type` gives it; of anything else, its type's with the module."""
    if hasattr(obj, "_payload"):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@public
def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy."""
    _check("is_conj", input)
    return False


@public
def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy."""
    _check("is_neg", input)
    return False


@public(is_function=False, is_property=True)
def is_sparse(input: Tensor) -> bool:
    """False: there are no sparse tensors."""
    return False


@public(is_function=False, is_property=True)
def is_sparse_csr(input: Tensor) -> bool:
    """False: there are no sparse tensors."""
    return False


@public(is_function=False, is_property=True)
def is_quantized(input: Tensor) -> bool:
    """False: there are no quantized tensors."""
    return False


@public(is_function=False, is_property=True)
def is_nested(input: Tensor) -> bool:
    """False: there are no nested tensors."""
    return False


@public(is_function=False, is_property=True)
def is_mkldnn(input: Tensor) -> bool:
    """False: there are no opaque tensors."""
    return False


@public(is_function=False, is_property=True)
def is_meta(input: Tensor) -> bool:
    """False: there are no data-less tensors."""
    return False


# -- functions of methods ---------------------------------------------------------------------------------------------
@public(method=False)
def detach_(input: Tensor) -> Tensor:
    """As the method ``detach_``."""
    return input.detach_()


@public(method=False)
def get_device(input: Tensor) -> int:
    """As the method ``get_device``."""
    _check("get_device", input)
    return input.get_device()


@public(is_function=False, method="__rdiv__")
def divided(input: Tensor, other: Any) -> Tensor:
    """``other / input``, under the name that it had in Python 2."""
    return input.reciprocal() * other


# -- a Python function at every element -------------------------------------------------------------------------------
@public(is_function=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Every element replaced by ``callable(element)``. Slow, and not differentiable."""
    return _mapped("apply_", callable, input)


@public(is_function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Every element replaced by ``callable(element, element of tensor)``; ``tensor`` broadcasts."""
    return _mapped("map_", callable, input, tensor)


@public(is_function=False)
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
