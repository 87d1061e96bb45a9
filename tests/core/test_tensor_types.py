"""PyTorch's tensor types: constructors, `isinstance`, `type()`, and the default type."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra._tensor_types import DTYPES


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_each_type_has_its_dtype(name: str) -> None:
    """A type constructs tensors of its dtype, which are its instances; `dir(candelabra)` lists it."""
    kind = getattr(cd, name)
    x = kind([1, 0])
    assert x.dtype is kind.dtype
    assert isinstance(x, kind)
    assert x.type() == f"candelabra.{name}"
    assert repr(kind) == f"<class 'candelabra.{name}'>"
    assert name in dir(cd)


def test_constructor_takes_sizes_values_arrays_and_tensors() -> None:
    """Sizes give an uninitialized tensor, sequences and arrays their values, and a tensor its own memory."""
    assert cd.FloatTensor(2, 3).shape == (2, 3)
    assert cd.FloatTensor(cd.Size([4])).shape == (4,)
    assert cd.FloatTensor().shape == (0,)
    assert cd.LongTensor([1.5, 2.0]).tolist() == [1, 2]
    assert cd.DoubleTensor(np.array([1, 2], "float32")).tolist() == [1.0, 2.0]
    x = cd.zeros(2)
    cd.FloatTensor(x).fill_(1)
    assert x.tolist() == [1.0, 1.0]
    assert cd.FloatTensor(2, device="meta").device.type == "meta"
    with pytest.raises(TypeError, match=r"FloatTensor\(\): expected a tensor of this type, got candelabra.LongTensor"):
        cd.FloatTensor(cd.ones(2, dtype=cd.int64))
    with pytest.raises(TypeError, match=r"new\(\): data must be a sequence \(got float\)"):
        cd.FloatTensor(3.5)


def test_types_are_hints_and_distinguish_tensors() -> None:
    """`isinstance` compares dtype and device; a type can stand in a hint."""
    x = cd.ones(2)
    assert isinstance(x, cd.FloatTensor)
    assert not isinstance(x, cd.LongTensor)
    assert not isinstance(x, cd.cuda.FloatTensor)
    assert not isinstance(x.to("meta"), cd.FloatTensor)
    assert not isinstance(1.0, cd.FloatTensor)
    assert isinstance(x, cd.LongTensor | cd.FloatTensor)


@pytest.mark.usefixtures("lantern")
def test_types_of_another_device() -> None:
    """`candelabra.<device type>.FloatTensor` makes and recognises tensors there, and `type()` moves between them."""
    x = cd.lantern.FloatTensor([1, 2])
    assert x.device.type == "lantern"
    assert x.type() == "candelabra.lantern.FloatTensor"
    assert isinstance(x, cd.lantern.FloatTensor)
    assert not isinstance(x, cd.FloatTensor)
    assert x.type(cd.LongTensor).device.type == "cpu"
    assert cd.ones(2).type("candelabra.lantern.IntTensor").device.type == "lantern"
    assert x.type(cd.lantern.FloatTensor) is x
    assert x.type(cd.float16).device.type == "lantern"
    assert x.type("IntTensor").device.type == "lantern"
    with pytest.raises(AttributeError, match=r"module 'candelabra\.lantern' has no attribute 'WideTensor'"):
        _ = cd.lantern.WideTensor


def test_type_converts_by_type_and_by_name() -> None:
    """`x.type()` takes a type, its name in either package, or a dtype."""
    x = cd.ones(2)
    for target in (cd.LongTensor, "candelabra.LongTensor", "torch.LongTensor", cd.int64):
        assert x.type(target).dtype is cd.int64
    for wrong in ("torch.OtherTensor", "torch.a.b.FloatTensor"):
        with pytest.raises(ValueError, match=f"invalid type: '{wrong}'"):
            x.type(wrong)
    with pytest.raises(AttributeError, match="has no attribute 'OtherTensor'"):
        _ = __import__("candelabra._tensor_types", fromlist=["x"]).OtherTensor


@pytest.mark.usefixtures("lantern")
def test_default_tensor_type_sets_dtype_and_device() -> None:
    """`set_default_tensor_type` sets both defaults with a warning, and refuses other types than floating-point ones."""
    deprecated = pytest.warns(UserWarning, match="set_default_tensor_type.* is deprecated")
    try:
        with deprecated:
            cd.set_default_tensor_type("torch.DoubleTensor")
        assert cd.ones(1).dtype is cd.float64
        with deprecated:
            cd.set_default_tensor_type(cd.lantern.FloatTensor)
        assert cd.ones(1).type() == "candelabra.lantern.FloatTensor"
    finally:
        with deprecated:
            cd.set_default_tensor_type(cd.FloatTensor)
    assert cd.ones(1).type() == "candelabra.FloatTensor"
    for wrong in (cd.LongTensor, "nothing", 5):
        with deprecated, pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
            cd.set_default_tensor_type(wrong)


def test_variable_is_the_tensor_type_of_old_programs() -> None:
    """`Variable(x)` shares memory and not history; every tensor is an instance."""
    x = cd.ones(2)
    v = cd.autograd.Variable(x, requires_grad=True)
    assert isinstance(x, cd.autograd.Variable)
    assert v.requires_grad
    assert not x.requires_grad
    assert not cd.autograd.Variable(v * 2).requires_grad
    assert cd.autograd.Variable().shape == (0,)
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        cd.autograd.Variable(x, volatile=True)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        cd.autograd.Variable([1.0])


def test_functions_of_numpy_return_tensors() -> None:
    """A universal function of NumPy gives a tensor, and booleans give uint8, as in PyTorch."""
    x = cd.tensor([0.0, 1.0])
    assert isinstance(np.exp(x), cd.Tensor)
    assert np.exp(x).tolist() == np.exp(np.array([0.0, 1.0], "float32")).tolist()
    assert np.greater(x, 0).dtype is cd.uint8


def test_reversed_and_pin_memory() -> None:
    """`reversed(x)` flips the first dim; `pin_memory()` returns the tensor and refuses one of another device."""
    x = cd.arange(3)
    assert reversed(x).tolist() == [2, 1, 0]
    assert reversed(cd.tensor(1)).item() == 1
    assert x.pin_memory() is x
    with pytest.raises(RuntimeError, match=r"cannot pin 'candelabra\.meta\.LongTensor': only tensors in the host"):
        x.to("meta").pin_memory()
