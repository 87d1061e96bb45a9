"""Queries about tensors, answered from dtypes and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import PYTHON_NAMES, Operand, category_of_scalar, default_for_category, dtype, result_dtype

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references.registry import reference, references
from candelabra_conformance.samples.inquiry import PROPERTIES

Array = np.ndarray[Any, Any]


def _floating(x: Array) -> bool:
    return bool(x.dtype.kind == "f" or x.dtype.name == "bfloat16")


def _no(x: Array) -> bool:
    return False


references(
    {
        "is_tensor": lambda x: isinstance(x, np.ndarray), "is_floating_point": _floating,
        "is_complex": np.iscomplexobj, "is_signed": lambda x: x.dtype.kind not in "bu", "is_inference": _no,
        "is_conj": _no, "is_neg": _no, "numel": np.size, **{f"Tensor.{name}": _no for name in PROPERTIES},
        "is_same_size": lambda x, y: x.shape == y.shape, "is_nonzero": lambda x: bool(x.reshape(())),
        "detach_": lambda x: x, "get_device": lambda x: -1,
    },
    as_given=True,
)  # fmt: skip


@reference("result_type", as_given=True)
def result_type(x: Any, y: Any) -> dtype:
    """Return the promoted dtype, from the ranks and dtypes of both."""
    return result_dtype([_operand(x), _operand(y)])


def _operand(value: Any) -> Operand:
    if isinstance(value, np.ndarray):
        return Operand(device_dtype(value.dtype), 2 if value.shape else 1)
    return Operand(default_for_category(category_of_scalar(value)), 0)


@reference("typename", as_given=True)
def typename(obj: Any) -> str:
    """Return PyTorch's name for a tensor's dtype, or a class's name with its module unless it is a builtin."""
    if isinstance(obj, np.ndarray):
        return f"candelabra.{PYTHON_NAMES[device_dtype(obj.dtype).name]}Tensor"
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
