"""Tensors in another dtype, on another device, as Python values; whole tensors compared."""

import math
from typing import Any

import candelabra as cd
import pytest
from candelabra.dtypes import ALL

PLACES = ["lantern:0", "lantern:1", "ember:0"]


# -- to ---------------------------------------------------------------------------------------------------------------
def test_to_returns_the_tensor_itself_where_nothing_changes() -> None:
    """Same dtype, same device: the same object, unless ``copy=True``."""
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
    """Device, dtype, both, and another tensor, by position and by keyword."""
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
    """What fits no overload is a TypeError that lists them."""
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments - got \("):
        cd.ones(2).to(*arguments)
    with pytest.raises(TypeError, match=r"got \(wrong=int\)"):
        cd.ones(2).to(wrong=1)


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("place", PLACES)
def test_moves_are_recorded(place: str) -> None:
    """The gradient comes back over the same way, in the dtype and on the device of its tensor."""
    x = cd.tensor([1.0, 2.0], dtype=cd.float64, requires_grad=True)
    y = x.to(place, cd.float32)
    assert y.requires_grad
    assert str(y.device) == place
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is cd.float64
    assert x.grad.device == x.device
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.usefixtures("lantern")
def test_moves_are_differentiated_twice() -> None:
    """The gradient of a gradient crosses devices too."""
    x = cd.tensor([3.0], requires_grad=True)
    y = x.to("lantern") ** 3
    (g,) = cd.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = cd.autograd.grad(g.sum(), x)
    assert g.tolist() == [27.0]
    assert h.tolist() == [18.0]


@pytest.mark.usefixtures("lantern")
def test_cast_happens_where_both_dtypes_exist() -> None:
    """A device without float64 gives and takes it through the one that has it, and refuses it by itself."""
    assert cd.ones(2, dtype=cd.float64).to("lantern", cd.float32).tolist() == [1.0, 1.0]
    near = cd.tensor([16777217, 1], dtype=cd.int32, device="lantern")
    assert near.to(cd.get_default_device(), cd.float64).tolist() == [16777217.0, 1.0]
    with pytest.raises(TypeError, match=r"cannot hold candelabra\.float64"):
        near.to(cd.float64)
    with pytest.raises(TypeError, match=r"cannot hold candelabra\.float64"):
        cd.ones(2, dtype=cd.float64).to("lantern")


def test_gradient_of_a_complex_cast_is_real_again() -> None:
    """A real tensor's gradient is real though the function went through complex numbers."""
    x = cd.tensor([1.0, 2.0], requires_grad=True)
    (x.to(cd.complex64) * 2j).abs().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_complex_to_real_warns() -> None:
    """The imaginary part is not dropped in silence; a bool asks only whether the number is 0."""
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
    """``x.float()`` and its kin cast, and carry gradients where the dtype can."""
    x = cd.tensor([0.0, 1.0, 2.5], dtype=cd.float32, requires_grad=True)
    made = getattr(x, name)()
    assert made.dtype.name == dtype
    assert made.requires_grad is (made.dtype.category >= 2)
    assert getattr(cd.zeros(0, 2), name)().shape == (0, 2)


def test_type_names_and_casts() -> None:
    """``x.type()`` is a name; ``x.type(name or dtype)`` casts."""
    x = cd.ones(2)
    assert x.type() == "candelabra.FloatTensor"
    assert x.type("candelabra.IntTensor").dtype is cd.int32
    assert x.type(cd.int8).dtype is cd.int8
    with pytest.raises(ValueError, match="invalid type: 'x'"):
        x.type("x")


# -- copy_ and clone --------------------------------------------------------------------------------------------------
def test_copy_casts_broadcasts_and_returns_the_target() -> None:
    """``copy_`` takes any dtype, shape that broadcasts, and plain numbers."""
    x = cd.zeros(2, 3, dtype=cd.int32)
    assert x.copy_(cd.tensor([1.5, 2.5, 3.5])) is x
    assert x.tolist() == [[1, 2, 3], [1, 2, 3]]
    x[:, 0].copy_(cd.tensor(9))
    assert x.tolist() == [[9, 2, 3], [9, 2, 3]]
    assert x.copy_(4).tolist() == [[4, 4, 4], [4, 4, 4]]
    assert x.copy_(x) is x
    with pytest.raises(TypeError, match=r"copy_\(\): argument 'other' \(position 1\) must be Tensor, not str"):
        x.copy_("x")


def test_fill_casts_the_number() -> None:
    """``fill_`` and ``copy_`` of a number give the tensor's dtype, or say that it cannot hold the number."""
    assert cd.zeros(2, dtype=cd.bool).fill_(3).tolist() == [True, True]
    assert cd.zeros(2, dtype=cd.int8).fill_(2.75).tolist() == [2, 2]
    assert cd.zeros(2, dtype=cd.complex64).fill_(1).tolist() == [1, 1]
    assert cd.zeros(2, dtype=cd.int8).fill_(cd.tensor(2.75)).tolist() == [2, 2]
    assert cd.zeros(2, dtype=cd.bool).copy_(2.5).tolist() == [True, True]
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8 without overflow"):
        cd.zeros(2, dtype=cd.int8).fill_(300)
    with pytest.raises(TypeError, match=r"float\(\) argument must be a string or a real number"):
        cd.zeros(2).fill_(1j)


def test_copy_of_overlapping_memory_reads_before_it_writes() -> None:
    """Source and target may be views of one another's memory."""
    x = cd.arange(5)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("place", PLACES)
def test_copy_crosses_devices_and_is_recorded(place: str) -> None:
    """``copy_`` from another device moves; the gradient goes back to the source, none to what was overwritten."""
    source = cd.tensor([1.0, 2.0], requires_grad=True)
    before = cd.tensor([5.0, 5.0], device=place, requires_grad=True)
    target = before * 1
    target.copy_(source)
    assert target.tolist() == [1.0, 2.0]
    (target * 3).sum().backward()
    assert source.grad is not None
    assert source.grad.tolist() == [3.0, 3.0]
    assert before.grad is not None
    assert before.grad.tolist() == [0.0, 0.0]


def test_clone_is_recorded_and_contiguous() -> None:
    """A clone has memory of its own in C order, and passes its gradient on."""
    x = cd.ones(2, 3, requires_grad=True)
    y = x.t().clone(memory_format=None)
    assert y.is_contiguous()
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == (2, 3)


# -- Python values ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", ALL, ids=lambda d: d.name)
def test_values_come_back_as_they_went_in(d: cd.dtype) -> None:
    """``tolist`` and ``item`` give Python's own numbers, of every dtype, in every layout."""
    kind = (bool, int, float, complex)[d.category]
    x = cd.tensor([[0, 1, 2], [3, 4, 5]]).to(d)
    want = [[kind(v) for v in row] for row in [[0, 1, 2], [3, 4, 5]]]
    assert x.tolist() == want
    assert x.t().tolist() == [list(column) for column in zip(*want, strict=True)]
    assert x[:, ::2].tolist() == [row[::2] for row in want]
    assert type(x[1, 2].item()) is kind
    assert x[1, 2].tolist() == want[1][2]


def test_lists_of_nothing_keep_their_nesting() -> None:
    """Zero sizes give empty lists as deep as the shape says."""
    assert cd.zeros(0).tolist() == []
    assert cd.zeros(2, 0).tolist() == [[], []]
    assert cd.zeros(0, 2).tolist() == []
    assert cd.zeros(1, 2, 0).tolist() == [[[], []]]
    assert cd.zeros(2, 1, 1).tolist() == [[[0.0]], [[0.0]]]


def test_item_needs_one_element() -> None:
    """Any shape with one element will do; others are an error."""
    assert cd.ones(1, 1).item() == 1.0
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        cd.ones(2).item()
    with pytest.raises(RuntimeError, match="a Tensor with 0 elements cannot be converted to Scalar"):
        cd.ones(0).item()


def test_pythons_number_protocols() -> None:
    """float, int, complex, index, floor, ceil, trunc, round and divmod work on tensors."""
    x = cd.tensor([2.75])
    assert (float(x), int(x), complex(x)) == (2.75, 2, 2.75 + 0j)
    assert (math.floor(x), math.ceil(x), math.trunc(-x)) == (2, 3, -2)
    assert float(cd.tensor(2 + 0j)) == 2.0
    assert [1, 2, 3][cd.tensor([1])] == 2
    assert [1, 2, 3][cd.tensor(True)] == 2
    assert list(range(cd.tensor(2))) == [0, 1]
    assert round(cd.tensor([1.25, 0.5]), 1).tolist() == pytest.approx([1.2, 0.5])
    assert round(cd.tensor([1.5, 0.5])).tolist() == [2.0, 0.0]
    assert [t.tolist() for t in divmod(cd.tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    assert [t.tolist() for t in divmod(7, cd.tensor([2]))] == [[3], [1]]


def test_number_protocols_refuse_what_python_would() -> None:
    """Many elements, imaginary parts, fractions as indices: PyTorch's errors."""
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        float(cd.ones(2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(cd.tensor(1j))
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        int(cd.tensor(1j))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        int(cd.tensor(math.nan))
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][cd.tensor(1.0)]
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2, 3][cd.tensor([1, 2])]


# -- comparison of whole tensors --------------------------------------------------------------------------------------
def test_equal_looks_at_shape_and_values() -> None:
    """Shapes must agree, dtypes need not, NaN equals nothing."""
    assert cd.equal(cd.ones(2), cd.ones(2, dtype=cd.float64))
    assert not cd.ones(2).equal(cd.ones(3))
    assert not cd.equal(cd.ones(2), cd.ones(2, 1))
    assert not cd.equal(cd.tensor(math.nan), cd.tensor(math.nan))
    assert cd.equal(cd.ones(0), cd.zeros(0))
    with pytest.raises(TypeError, match=r"equal\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        cd.equal(cd.ones(2), 1)


def test_isclose_is_relative_to_the_second() -> None:
    """Tolerances add up; infinities equal themselves only; NaN only where asked."""
    a = cd.tensor([1.0, math.inf, math.inf, math.nan, 100.0])
    b = cd.tensor([1.0 + 1e-6, math.inf, -math.inf, math.nan, 101.0])
    assert cd.isclose(a, b).tolist() == [True, True, False, False, False]
    assert a.isclose(b, rtol=0.1, equal_nan=True).tolist() == [True, True, False, True, True]
    assert cd.isclose(a, b, rtol=0, atol=0).tolist() == [False, True, False, False, False]
    assert cd.isclose(cd.tensor([1, 2]), cd.tensor([1, 3]), rtol=0.5).tolist() == [True, True]
    assert cd.isclose(cd.tensor(True), cd.tensor(True)).item() is True
    assert cd.allclose(cd.ones(0), cd.zeros(0))
    assert not cd.allclose(a, b)
    with pytest.raises(RuntimeError, match="Float did not match Double"):
        cd.isclose(a, b.double())
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -1"):
        cd.isclose(a, b, rtol=-1)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero, but got -1"):
        cd.allclose(a, b, atol=-1)


def test_questions_about_a_tensor() -> None:
    """The module's functions answer as the methods do."""
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
