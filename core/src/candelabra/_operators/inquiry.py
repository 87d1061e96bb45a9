"""Functions that inspect tensors and return no tensor: the kind, the number of elements, the dtype of a result.

Lazy, quantised and nested tensors of PyTorch are not supported. The functions that ask for them return False,
so that programs that call these functions run.
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
    """Raise ``TypeError`` for the first argument that is not a tensor."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not hasattr(value, "_payload"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {kind_of(value)}"
            )


# -- dtype ------------------------------------------------------------------------------------------------------------
@public(method=False, guarded=False)
def is_tensor(obj: object) -> bool:
    """Return whether an object is a Tensor."""
    from candelabra._tensor import Tensor

    return isinstance(obj, Tensor)


@public(method=False)
def typename(obj: object) -> str:
    """Return the name of a tensor's type as :meth:`Tensor.type` does; of other objects, the qualified name of the
    type.
    """
    if is_tensor(obj):
        name: str = obj.type()  # type: ignore[attr-defined]
        return name
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@public(method=False, guarded=False)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a real floating dtype."""
    check_tensors("is_floating_point", input=input)
    return input.is_floating_point()


@public(method=False, guarded=False)
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex."""
    check_tensors("is_complex", input=input)
    return input.is_complex()


@public(method=False)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype can represent negative numbers."""
    check_tensors("is_signed", input=input)
    return input.is_signed()


@public(method=False)
def result_type(tensor1: Tensor | Number, tensor2: Tensor | Number) -> dtypes.dtype:
    """Return the dtype of ``tensor1 + tensor2``."""
    return dtypes.result_dtype([_operand(tensor1), _operand(tensor2)])


def _operand(value: Any) -> Operand:
    if hasattr(value, "_payload"):
        return Operand(value.dtype, 2 if value._payload.shape else 1)
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"result_type() takes tensors and numbers, not {kind_of(value)}")
    return Operand(default_for_category(category_of_scalar(value)), 0)


# -- shape and device -------------------------------------------------------------------------------------------------
@public(method=False, guarded=False)
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    check_tensors("numel", input=input)
    return input.numel()


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    check_tensors("is_same_size", input=input, other=other)
    return bool(input.shape == other.shape)


@public(guarded=False)
def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not 0. Raises ``RuntimeError`` unless there is exactly one."""
    check_tensors("is_nonzero", input=input)
    return bool(input)


@public(method=False)
def get_device(input: Tensor) -> int:
    """Return the index of the tensor's device."""
    check_tensors("get_device", input=input)
    return input.get_device()


# -- autograd ---------------------------------------------------------------------------------------------------------
@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was created in inference mode."""
    check_tensors("is_inference", input=input)
    return input.is_inference()


@public(method=False, uses="object")
def detach_(input: Tensor) -> Tensor:
    """Detach the tensor from its graph, in place."""
    return input.detach_()


# -- unsupported kinds ------------------------------------------------------------------------------------------------
@public
def is_conj(input: Tensor) -> bool:
    """Return False: conjugation is never lazy."""
    check_tensors("is_conj", input=input)
    return False


@public
def is_neg(input: Tensor) -> bool:
    """Return False: negation is never lazy."""
    check_tensors("is_neg", input=input)
    return False


@public(is_function=False, is_property=True)
def is_sparse(input: Tensor) -> bool:
    """Whether the tensor is sparse, in coordinate format."""
    return False


@public(is_function=False, is_property=True)
def is_sparse_csr(input: Tensor) -> bool:
    """False: the only sparse layout is the coordinate format."""
    return False


@public(is_function=False, is_property=True)
def is_quantized(input: Tensor) -> bool:
    """False: quantized tensors are not supported."""
    return False


@public(is_function=False, is_property=True)
def is_nested(input: Tensor) -> bool:
    """False: nested tensors are not supported."""
    return False


@public(is_function=False, is_property=True)
def is_mkldnn(input: Tensor) -> bool:
    """False: opaque tensors are not supported."""
    return False


@public(is_function=False, is_property=True)
def is_meta(input: Tensor) -> bool:
    """Whether the tensor is on the device ``meta``, whose tensors have shapes and no data."""
    return input.device.type == "meta"
