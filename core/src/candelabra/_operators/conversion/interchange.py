"""Methods with which other libraries read a tensor: arrays, DLPack, memory, copies, pickles."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange import copying, dlpack
from candelabra._interchange import numpy as arrays
from candelabra._records.callables import public
from candelabra._records.lookup import public_function

if TYPE_CHECKING:
    from candelabra.typing import Tensor


# -- arrays -----------------------------------------------------------------------------------------------------------
@public(is_function=False, uses="memory")
def numpy(input: Tensor, *, force: bool = False) -> Any:
    """Return a NumPy array over the tensor's memory, with its strides; for bfloat16, with the type of ``ml_dtypes``.

    Raises ``RuntimeError`` for a tensor that requires grad and ``TypeError`` for one that is not on the host;
    ``force=True`` detaches and copies as needed.
    """
    return arrays.as_ndarray(input, force)


@public(is_function=False, uses="memory")
def __array__(input: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return the array for ``numpy.asarray(x)``: that of :meth:`numpy`, cast to NumPy's ``dtype``.

    Raises ``ValueError`` with ``copy=False`` for another dtype.
    """
    array = arrays.as_ndarray(input)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"Unable to avoid copy while creating an array as requested: {array.dtype} to {dtype}.")
        return array.astype(dtype)
    return array.copy() if copy else array


@public(is_function=False, is_property=True)
def __array_interface__(input: Tensor) -> dict[str, Any]:
    """The address of a host tensor's memory in NumPy's protocol. Raises ``AttributeError`` for other tensors."""
    host = input._instance.capabilities.host
    if not host or input.requires_grad or input.dtype.name == "bfloat16":
        raise AttributeError("only tensors on the host, without grad, of a dtype of NumPy's have __array_interface__")
    interface: dict[str, Any] = arrays.as_ndarray(input).__array_interface__
    return interface


@public(is_function=False, uses="memory")
def __buffer__(input: Tensor, flags: int) -> memoryview:
    """Return the buffer of ``memoryview(x)`` from Python 3.12 on (PEP 688). Before, use ``memoryview(x.numpy())``."""
    return memoryview(arrays.as_ndarray(input))


@public(is_function=False, uses="memory")
def __dlpack__(
    input: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """Return a DLPack capsule over the tensor's memory. Raises ``BufferError`` for a tensor that requires grad."""
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return dlpack.export(input, **{name: value for name, value in options.items() if value is not None})


@public(is_function=False, uses="dtype")
def __dlpack_device__(input: Tensor) -> tuple[int, int]:
    """Return the (type, id) of the tensor's device in DLPack's numbering."""
    return dlpack.device_of(input)


@public(is_function=False, uses="memory")
def data_ptr(input: Tensor) -> int:
    """Return the address of the first element, for tensors on the host; 0 for empty ones."""
    if not input.numel():
        return 0
    return int(arrays.as_ndarray(input.detach()).__array_interface__["data"][0])


@public(is_function=False, uses="memory")
def untyped_storage(input: Tensor) -> Any:
    """Return an object with the address and the size in bytes of the memory that a tensor shares with its views.

    It has ``data_ptr()``, ``nbytes()``, ``size()`` and ``device``, and no elements; storages of views are equal.
    """
    from candelabra._storage import UntypedStorage

    return UntypedStorage(input)


@public(is_function=False, uses="memory")
def storage(input: Tensor) -> Any:
    """As :meth:`untyped_storage`, but ``size()`` and ``len()`` count elements, which ``tolist()`` returns."""
    from candelabra._storage import TypedStorage

    return TypedStorage(input)


@public(is_function=False)
def __array_wrap__(input: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Return the result of a function of NumPy as a tensor, on the host. Booleans become uint8, as in PyTorch."""
    made: Tensor = public_function("from_numpy")(array.astype("uint8") if array.dtype == bool else array)
    return made


# -- host memory ------------------------------------------------------------------------------------------------------
@public(is_function=False, uses="memory")
def share_memory_(input: Tensor) -> Tensor:
    """Move the elements to memory that other processes can share, and return the tensor.

    Forked processes, and those that get the tensor through ``multiprocessing``, see each other's writes. Views that
    were made before keep the old memory. Raises ``RuntimeError`` for a view, and for devices other than the host's.
    """
    from candelabra._interchange.sharing import share_memory

    return share_memory(input)


@public(is_function=False, uses="memory")
def is_shared(input: Tensor) -> bool:
    """Return whether the elements are in memory that other processes can share; see :meth:`share_memory_`."""
    from candelabra._interchange.sharing import mapping_of

    return mapping_of(input) is not None


@public(is_function=False, uses="object")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: no device copies faster from page-locked memory, so none is allocated.

    Raises ``RuntimeError`` for a tensor that is not in the host's memory.
    """
    if not input._instance.capabilities.host:
        raise RuntimeError(f"cannot pin '{input.type()}': only tensors in the host's memory can be pinned")
    return input


@public(is_function=False, uses="dtype")
def is_pinned(input: Tensor) -> bool:
    """Return False: memory is never page-locked."""
    return False


# -- copies and pickles -----------------------------------------------------------------------------------------------
@public(is_function=False)
def __deepcopy__(input: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a copy in new memory; tensors that share memory share it in the copy, too.

    Raises ``RuntimeError`` for non-leaves.
    """
    return copying.deep_copy(input, memo)


@public(is_function=False, uses="object")
def __copy__(input: Tensor) -> Tensor:
    """Return a second tensor over the same memory."""
    return copying.shallow_copy(input)


@public(is_function=False)
def __reduce_ex__(input: Tensor, protocol: int) -> tuple[Any, ...]:
    """Return a pickle of the elements, dtype, shape, device and attributes; it calls only one function of
    candelabra.
    """
    return copying.reduced(input)
