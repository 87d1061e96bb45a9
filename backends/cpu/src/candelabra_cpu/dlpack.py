"""DLPack for NumPy arrays, bfloat16 included, which NumPy has no code for.

A capsule of bfloat16 is one of uint16 with another type code, so the code is changed in the capsule's struct.
Source: dlpack.h, ``DLManagedTensor`` and ``DLManagedTensorVersioned``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

UINT, BFLOAT = 1, 4
_TENSOR_CODE = 8 + 8 + 4
"""Bytes before the type code in DLTensor: data pointer, device, number of dims."""
_BEFORE_TENSOR = {b"dltensor": 0, b"dltensor_versioned": 8 + 8 + 8 + 8}
"""Bytes before the DLTensor: nothing, or version, context, deleter, flags."""

_api = ctypes.pythonapi
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


def _type_code(capsule: Any) -> ctypes.c_uint8:
    name = _name(capsule)
    return ctypes.c_uint8.from_address(_pointer(capsule, name) + _BEFORE_TENSOR[name] + _TENSOR_CODE)


def exported(array: np.ndarray, **options: Any) -> Any:
    """A capsule over an array's memory."""
    if array.dtype != ml_dtypes.bfloat16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    _type_code(capsule).value = BFLOAT
    return capsule


class _Readable:
    """An exporter whose bfloat16 is handed on as uint16, which NumPy reads."""

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


def imported(source: Any, copy: bool | None) -> np.ndarray | None:
    """An array over an exporter's memory; None where that is not the host's.

    Memory that its owner calls read-only is copied; ``BufferError`` where ``copy=False``.
    """
    if isinstance(source, np.ndarray):  # as it is: strides, and dtypes that DLPack has no code for
        return source.copy() if copy else source.view()
    readable = _Readable(source)
    if readable.__dlpack_device__()[0] != 1:
        return None
    array = np.from_dlpack(readable, copy=copy)
    if readable.is_bfloat16:
        array = array.view(ml_dtypes.bfloat16)
    if array.flags.writeable:
        return array
    if copy is False:
        raise BufferError("the memory is read-only, and copy=False forbids to copy it")
    return array.copy()
