"""DLPack export and import of NumPy arrays, including bfloat16, which NumPy does not support.

A bfloat16 capsule is a uint16 capsule with another type code. This module patches the type code in the struct of the
capsule. Source: dlpack.h, ``DLManagedTensor`` and ``DLManagedTensorVersioned``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

UINT, BFLOAT = 1, 4
_TYPE_CODE_OFFSET = 8 + 8 + 4
"""The offset of the type code in ``DLTensor``, after the data pointer, the device and the number of dims."""
_TENSOR_OFFSET = {b"dltensor": 0, b"dltensor_versioned": 8 + 8 + 8 + 8}
"""The offset of the ``DLTensor`` in each struct; version, context, deleter and flags precede it in the second."""

_api = ctypes.pythonapi
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def _type_code(capsule: Any) -> ctypes.c_uint8:
    name = _name(capsule)
    return ctypes.c_uint8.from_address(_pointer(capsule, name) + _TENSOR_OFFSET[name] + _TYPE_CODE_OFFSET)


def to_capsule(array: np.ndarray, **options: Any) -> Any:
    """Return a DLPack capsule over the memory of an array."""
    if array.dtype != ml_dtypes.bfloat16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    _type_code(capsule).value = BFLOAT
    return capsule


class _Uint16Exporter:
    """Wraps an exporter so that NumPy can read its bfloat16 capsule, as uint16."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.is_bfloat16 = False

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.source.__dlpack_device__()
        return int(kind), int(number)

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source.__dlpack__(**options)
        code = _type_code(capsule)
        if code.value == BFLOAT:
            self.is_bfloat16 = True
            code.value = UINT
        return capsule


def from_exporter(source: Any, copy: bool | None) -> np.ndarray | None:
    """Return an array over the memory of a DLPack exporter; None if it is not host memory.

    Read-only memory is copied. Raises ``BufferError`` for it if ``copy=False``.
    """
    if isinstance(source, np.ndarray):  # keeps strides that DLPack cannot represent, and dtypes without a type code
        return source.copy() if copy else source.view()
    exporter = _Uint16Exporter(source)
    if exporter.__dlpack_device__()[0] != 1:
        return None
    array = np.from_dlpack(exporter, copy=copy)
    if exporter.is_bfloat16:
        array = array.view(ml_dtypes.bfloat16)
    if array.flags.writeable:
        return array
    if copy is False:
        raise BufferError("the source is read-only and copy=False does not allow a copy: pass copy=None or copy=True")
    return array.copy()
