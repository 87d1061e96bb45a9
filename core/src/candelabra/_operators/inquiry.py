"""Questions about tensors whose answer is no tensor: of which kind, how many elements, which dtype comes out.

What is lazy, sparse, quantised or nested in PyTorch does not exist here; the functions that ask for it answer False, so
that programs which call them run.
"""

from __future__ import annotations

from candelabra import dtypes
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._records.callables import public
from candelabra.dtypes import Operand, category_of_scalar, default_for_category

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


def check_tensors(name: str, **arguments: Any) -> None:
    """``TypeError`` for the first argument that is no tensor."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not hasattr(value, "_payload"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind_of(value)}"
            )


# -- dtype ------------------------------------------------------------------------------------------------------------
@public(method=False)
def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor."""
    from candelabra._tensor import Tensor

    return isinstance(obj, Tensor)


@public(method=False)
def typename(obj: object) -> str:
    """The name of a tensor's type, as :meth:`Tensor.type` gives it; of anything else, its type's with the module."""
    if is_tensor(obj):
        found: str = obj.type()  # type: ignore[attr-defined]
        return found
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one; complex ones are not."""
    check_tensors("is_floating_point", input=input)
    return input.is_floating_point()


@public(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    check_tensors("is_complex", input=input)
    return input.is_complex()


@public(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    check_tensors("is_signed", input=input)
    return input.is_signed()


@public(method=False)
def result_type(tensor1: Tensor | Number, tensor2: Tensor | Number) -> dtypes.dtype:
    """The dtype of ``tensor1 + tensor2``."""
    return dtypes.result_dtype([_operand(tensor1), _operand(tensor2)])


def _operand(value: Any) -> Operand:
    if hasattr(value, "_payload"):
        return Operand(value.dtype, 2 if value._payload.shape else 1)
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"result_type() takes tensors and numbers, not {kind_of(value)}")
    return Operand(default_for_category(category_of_scalar(value)), 0)


# -- shape and place --------------------------------------------------------------------------------------------------
@public(method=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    check_tensors("numel", input=input)
    return input.numel()


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    check_tensors("is_same_size", input=input, other=other)
    return bool(input.shape == other.shape)


@public
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0; ``RuntimeError`` unless there is exactly one."""
    check_tensors("is_nonzero", input=input)
    return bool(input)


@public(method=False)
def get_device(input: Tensor) -> int:
    """The number of the device, as the method ``get_device``."""
    check_tensors("get_device", input=input)
    return input.get_device()


# -- autograd ---------------------------------------------------------------------------------------------------------
@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    check_tensors("is_inference", input=input)
    return input.is_inference()


@public(method=False)
def detach_(input: Tensor) -> Tensor:
    """Take the tensor out of its graph, as the method ``detach_``."""
    return input.detach_()


# -- what does not exist ----------------------------------------------------------------------------------------------
@public
def is_conj(input: Tensor) -> bool:
    """False: conjugation is never lazy."""
    check_tensors("is_conj", input=input)
    return False


@public
def is_neg(input: Tensor) -> bool:
    """False: negation is never lazy."""
    check_tensors("is_neg", input=input)
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
