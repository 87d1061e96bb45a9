"""A tensor class for tests of the readers and writers, which do not depend on a tensor class."""

from __future__ import annotations

import struct

from candelabra._serialization.safetensors_file import TensorAccess
from candelabra._serialization.stored import StoredTensor


class FakeTensor:
    """Bytes with a dtype and a shape. It compares by identity, as tensors do in containers."""

    def __init__(
        self, data: bytes, dtype: str, shape: tuple[int, ...], requires_grad: bool = False, device: object = None
    ) -> None:
        self.data = data
        self.dtype = dtype
        self.shape = shape
        self.requires_grad = requires_grad
        self.device = device

    def requires_grad_(self) -> FakeTensor:
        """Set requires_grad, as Tensor does."""
        self.requires_grad = True
        return self

    @property
    def stored_values(self) -> tuple[str, tuple[int, ...], bytes, bool]:
        """Return all values that a file stores, for comparisons."""
        return self.dtype, self.shape, self.data, self.requires_grad


def floats(*values: float) -> FakeTensor:
    """Return a 1-dimensional float32 tensor."""
    return FakeTensor(struct.pack(f"<{len(values)}f", *values), "float32", (len(values),))


def from_stored(stored: StoredTensor) -> FakeTensor:
    """Create a tensor for a reader."""
    return FakeTensor(stored.contiguous_bytes(), stored.dtype, stored.shape, stored.requires_grad)


ACCESS = TensorAccess(
    is_tensor=lambda obj: isinstance(obj, FakeTensor),
    describe=lambda tensor: (tensor.dtype, tensor.shape, tensor.requires_grad),
    to_bytes=lambda tensor: tensor.data,
)
