"""Methods by which Python and other libraries read a tensor: numbers, arrays, DLPack, copies, pickles."""

from __future__ import annotations

import builtins
import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange import copying, dlpack
from candelabra._interchange import numpy as arrays
from candelabra._interchange.values import item
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


# -- numbers ----------------------------------------------------------------------------------------------------------
def _number(input: Tensor) -> Any:
    if input.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(input)


def _real(input: Tensor, kind: str) -> Any:
    value = _number(input)
    if isinstance(value, builtins.complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


@public(is_function=False)
def __float__(input: Tensor) -> float:
    """``float(x)`` of one element; ``ValueError`` for more, ``RuntimeError`` for a complex one."""
    return builtins.float(_real(input, "double"))


@public(is_function=False)
def __int__(input: Tensor) -> int:
    """``int(x)`` of one element, cut towards 0."""
    return builtins.int(_real(input, "int64_t"))


@public(is_function=False)
def __complex__(input: Tensor) -> complex:
    """``complex(x)`` of one element."""
    return builtins.complex(_number(input))


@public(is_function=False)
def __index__(input: Tensor) -> int:
    """One integer (or bool) where Python wants an index; ``TypeError`` for anything else."""
    if input.numel() != 1 or input.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return builtins.int(item(input))


@public(is_function=False)
def __floor__(input: Tensor) -> int:
    """``math.floor(x)`` of one element, an int."""
    found: int = math.floor(_real(input, "double"))
    return found


@public(is_function=False)
def __ceil__(input: Tensor) -> int:
    """``math.ceil(x)`` of one element, an int."""
    found: int = math.ceil(_real(input, "double"))
    return found


@public(is_function=False)
def __trunc__(input: Tensor) -> int:
    """``math.trunc(x)`` of one element, an int."""
    found: int = math.trunc(_real(input, "double"))
    return found


@public(is_function=False)
def __round__(input: Tensor, ndigits: int | None = None) -> Tensor:
    """``round(x, ndigits)``: every element rounded, ties to even; a tensor of the same dtype."""
    return input.round(decimals=ndigits or 0)


@public(is_function=False)
def __divmod__(input: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """``(x // y, x % y)``."""
    return input // other, input % other


@public(is_function=False)
def __rdivmod__(input: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """``(y // x, y % x)``."""
    return other // input, other % input


# -- arrays -----------------------------------------------------------------------------------------------------------
@public(is_function=False)
def numpy(input: Tensor, *, force: bool = False) -> Any:
    """A NumPy array over the tensor's memory, with its strides; bfloat16 has ``ml_dtypes``' type.

    ``RuntimeError`` for a tensor that requires grad and ``TypeError`` for one of another device than the host's;
    ``force=True`` detaches and copies as needed.
    """
    return arrays.as_ndarray(input, force)


@public(is_function=False)
def __array__(input: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """What ``numpy.asarray(x)`` calls: :meth:`numpy`, then a cast, a ``ValueError`` with ``copy=False``."""
    array = arrays.as_ndarray(input)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"Unable to avoid copy while creating an array as requested: {array.dtype} to {dtype}.")
        return array.astype(dtype)
    return array.copy() if copy else array


@public(is_function=False, is_property=True)
def __array_interface__(input: Tensor) -> dict[str, Any]:
    """The address of a host tensor's memory, in NumPy's protocol; AttributeError where there is none to tell."""
    host = input._instance.capabilities.host
    if not host or input.requires_grad or input.dtype.name == "bfloat16":
        raise AttributeError("only tensors on the host, without grad, of a dtype of NumPy's have __array_interface__")
    found: dict[str, Any] = arrays.as_ndarray(input).__array_interface__
    return found


@public(is_function=False)
def __buffer__(input: Tensor, flags: int) -> memoryview:
    """The buffer protocol from Python 3.12 on (PEP 688): ``memoryview(x)``. Before, ``memoryview(x.numpy())``."""
    return memoryview(arrays.as_ndarray(input))


@public(is_function=False)
def __dlpack__(
    input: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule over the tensor's memory. ``BufferError`` for a tensor that requires grad."""
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return dlpack.export(input, **{name: value for name, value in options.items() if value is not None})


@public(is_function=False)
def __dlpack_device__(input: Tensor) -> tuple[int, int]:
    """The (type, id) of the tensor's device in DLPack's numbering."""
    return dlpack.device_of(input)


@public(is_function=False)
def data_ptr(input: Tensor) -> int:
    """The address of the first element, for tensors on the host; 0 for empty ones."""
    if not input.numel():
        return 0
    return builtins.int(arrays.as_ndarray(input.detach()).__array_interface__["data"][0])


@public(is_function=False)
def is_pinned(input: Tensor) -> bool:
    """Whether the memory is page-locked: never."""
    return False


# -- copies and pickles -----------------------------------------------------------------------------------------------
@public(is_function=False)
def __deepcopy__(input: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy in memory of its own; tensors that share memory share it in the copy. ``RuntimeError`` for non-leaves."""
    return copying.deep_copy(input, memo)


@public(is_function=False)
def __copy__(input: Tensor) -> Tensor:
    """A second tensor on the same memory."""
    return copying.shallow_copy(input)


@public(is_function=False)
def __reduce_ex__(input: Tensor, protocol: int) -> tuple[Any, ...]:
    """A pickle of the elements, dtype, shape, device and attributes: it calls one function of candelabra, no other."""
    return copying.reduced(input)


@public
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never lazy here."""
    return input


@public
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: negation is never lazy here."""
    return input
