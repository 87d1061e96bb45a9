"""Conversion of tensors to another dtype and another device."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest

DEVICES = ["lantern:0", "lantern:1", "ember:0"]


def test_to_returns_the_tensor_itself_where_nothing_changes() -> None:
    """The same dtype and device return the same object, unless ``copy=True``."""
    x = cd.ones(2)
    assert x.to(cd.float32) is x
    assert x.to(x.device) is x
    assert x.to(str(x.device)) is x
    assert x.to(x) is x
    assert x.to() is x
    assert x.to(device=None, dtype=None) is x
    assert x.to(memory_format=None) is x
    assert x.float() is x
    copied = x.to(cd.float32, copy=True)
    assert copied is not x
    assert copied.data_ptr() != x.data_ptr()


@pytest.mark.usefixtures("lantern")
def test_to_takes_every_overload() -> None:
    """Device, dtype, both, or another tensor are accepted by position and by keyword."""
    x = cd.ones(2)
    other = cd.ones(1, dtype=cd.int32, device="lantern:1")
    for moved in (
        x.to("lantern:1", cd.int32),
        x.to(cd.device("lantern", 1), cd.int32, True),
        x.to("lantern:1", dtype=cd.int32, non_blocking=True),
        x.to(device="lantern:1", dtype=cd.int32, copy=True),
        x.to(other),
        x.to(other=other),
        x.to(other, True, False),
        x.type_as(other),
    ):
        assert moved.dtype is cd.int32
        assert str(moved.device) == "lantern:1"
    assert x.to(cd.int32, True).dtype is cd.int32
    assert x.to(float).dtype is cd.float64


@pytest.mark.parametrize(
    "arguments",
    [(cd.float32, cd.float64), (cd.float32, True, False, None), ("x", 3), (cd.ones(1), cd.float32, 1, 2, 3)],
    ids=repr,
)
def test_to_refuses_arguments_of_no_overload(arguments: tuple[Any, ...]) -> None:
    """The TypeError lists the overloads."""
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \("):
        cd.ones(2).to(*arguments)
    with pytest.raises(TypeError, match=r"got \(wrong=int\)"):
        cd.ones(2).to(wrong=1)


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("device", DEVICES)
def test_moves_are_recorded(device: str) -> None:
    """The gradient is converted back to the dtype and the device of its tensor."""
    x = cd.tensor([1.0, 2.0], dtype=cd.float64, requires_grad=True)
    y = x.to(device, cd.float32)
    assert y.requires_grad
    assert str(y.device) == device
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is cd.float64
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.usefixtures("lantern")
def test_moves_are_differentiated_twice() -> None:
    """Second derivatives cross devices too."""
    x = cd.tensor([3.0], requires_grad=True)
    y = x.to("lantern") ** 3
    (g,) = cd.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = cd.autograd.grad(g.sum(), x)
    assert g.tolist() == [27.0]
    assert h.tolist() == [18.0]


@pytest.mark.usefixtures("lantern")
def test_cast_happens_where_both_dtypes_exist() -> None:
    """A device without float64 converts through a device that has it, and refuses it on its own."""
    assert cd.ones(2, dtype=cd.float64).to("lantern", cd.float32).tolist() == [1.0, 1.0]
    near = cd.tensor([16777217, 1], dtype=cd.int32, device="lantern")
    assert near.to(cd.get_default_device(), cd.float64).tolist() == [16777217.0, 1.0]
    with pytest.raises(TypeError, match=r"cannot hold candelabra\.float64"):
        near.to(cd.float64)
    with pytest.raises(TypeError, match=r"cannot hold candelabra\.float64"):
        cd.ones(2, dtype=cd.float64).to("lantern")


def test_gradient_of_a_complex_cast_is_real_again() -> None:
    """The gradient of a real tensor is real although the function used complex numbers."""
    x = cd.tensor([1.0, 2.0], requires_grad=True)
    (x.to(cd.complex64) * 2j).abs().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_complex_to_real_warns() -> None:
    """Dropping the imaginary part warns; a conversion to bool does not."""
    z = cd.tensor([1 + 2j, 0j])
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        assert z.to(cd.float32).tolist() == [1.0, 0.0]
    assert cd.tensor([1j, 0j]).bool().tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"),
        ("long", "int64"), ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"),
        ("cfloat", "complex64"), ("cdouble", "complex128"),
    ],
)  # fmt: skip
def test_casting_methods(name: str, dtype: str) -> None:
    """``x.float()`` and similar methods convert, and propagate gradients for differentiable dtypes."""
    x = cd.tensor([0.0, 1.0, 2.5], dtype=cd.float32, requires_grad=True)
    made = getattr(x, name)()
    assert made.dtype.name == dtype
    assert made.requires_grad is (made.dtype.category >= 2)
    assert getattr(cd.zeros(0, 2), name)().shape == (0, 2)


def test_type_names_and_casts() -> None:
    """``x.type()`` returns a name; ``x.type(name or dtype)`` converts."""
    x = cd.ones(2)
    assert x.type() == "candelabra.FloatTensor"
    assert x.type("candelabra.IntTensor").dtype is cd.int32
    assert x.type(cd.int8).dtype is cd.int8
    with pytest.raises(ValueError, match="invalid type: 'x'"):
        x.type("x")
