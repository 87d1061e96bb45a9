"""The memory of a tensor as an object, for programs that ask where it is, how large it is, and who shares it.

A device's payload owns its memory, so a storage has no elements of its own: it describes the memory of the tensor whose
views share it.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._keys import VIEW
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._device import device
    from candelabra.dtypes import dtype

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """The memory of a tensor in bytes. Views of one tensor have equal storages."""

    __slots__ = ("_owner",)

    def __init__(self, tensor: Tensor) -> None:
        self._owner = tensor._base if tensor._keys & VIEW else tensor.detach()

    def data_ptr(self) -> int:
        """Return the address of the first byte, for tensors on the host; 0 for empty ones."""
        address: int = self._owner.data_ptr()
        return address and address - self._owner.storage_offset() * self._owner.dtype.itemsize

    def nbytes(self) -> int:
        """Return the number of bytes up to the last element that the tensor, of which all others are views, has."""
        if not self._owner.numel():
            return 0
        strides, offset = self._owner._layout()
        last = sum((n - 1) * step for n, step in zip(self._owner.shape, strides, strict=True))
        return (offset + last + 1) * self._owner.dtype.itemsize

    def size(self) -> int:
        """Return the number of bytes."""
        return self.nbytes()

    @property
    def device(self) -> device:
        """The device that has the memory."""
        return self._owner.device

    def __len__(self) -> int:
        return self.size()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._owner._payload is self._owner._payload

    def __hash__(self) -> int:
        return id(self._owner._payload)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.nbytes()} bytes on {self.device}>"


class TypedStorage(UntypedStorage):
    """The memory of a tensor in elements of its dtype."""

    __slots__ = ()

    @property
    def dtype(self) -> dtype:
        """The dtype of the elements."""
        return self._owner.dtype

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    def untyped(self) -> UntypedStorage:
        """Return the same memory in bytes."""
        return UntypedStorage(self._owner)

    def tolist(self) -> Any:
        """Return the elements as Python numbers."""
        return self._owner.as_strided((self.size(),), (1,), 0).tolist()
