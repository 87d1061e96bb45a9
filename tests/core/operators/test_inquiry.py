"""Functions that return properties of tensors."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


def test_what_does_not_exist_is_answered_with_no() -> None:
    """No tensor is lazy, sparse, quantised or nested."""
    x = cd.ones(2)
    assert not any((cd.is_conj(x), x.is_neg(), x.is_sparse, x.is_quantized, x.is_nested, x.is_mkldnn))
    assert cd.resolve_conj(x) is x
    assert cd.resolve_neg(x) is x


def test_tensors_without_data_say_so() -> None:
    """is_meta is True on the device ``meta`` only."""
    assert cd.empty(2, device="meta").is_meta
    assert not cd.ones(2).is_meta


def test_questions_are_functions_too() -> None:
    """Sign, inference and device properties are functions; non-tensors raise."""
    x = cd.tensor([1, 2], dtype=cd.uint8)
    assert not cd.is_signed(x)
    assert cd.is_signed(x.float())
    assert not cd.is_inference(x)
    assert cd.get_device(x) == x.get_device()
    for name in ("is_signed", "is_inference", "is_conj", "is_neg", "get_device"):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor, not int"):
            getattr(cd, name)(3)


def test_everything_has_a_type_name() -> None:
    """A tensor's type name contains the dtype."""
    assert cd.typename(cd.ones(1)) == "candelabra.FloatTensor"
    assert cd.typename(3) == "int"
    assert cd.typename(np.zeros(1)) == "numpy.ndarray"


def test_detach_in_place_is_a_function() -> None:
    """The function equals the method."""
    x = cd.ones(1, requires_grad=True) * 2
    assert cd.detach_(x) is x
    assert not x.requires_grad


def test_questions_about_a_tensor() -> None:
    """The functions return the same as the methods."""
    x = cd.ones(2, 3)
    assert cd.is_tensor(x)
    assert not cd.is_tensor([1])
    assert cd.numel(x) == 6
    assert cd.is_floating_point(x)
    assert not cd.is_complex(x)
    assert x.is_same_size(cd.zeros(2, 3))
    assert cd.is_nonzero(cd.ones(1))
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        cd.is_nonzero(x)
    with pytest.raises(TypeError, match=r"numel\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        cd.numel(3)
