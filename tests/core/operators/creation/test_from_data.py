"""Tensors from Python values, arrays and buffers."""

import array
import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest


# -- nested sequences -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (True, "bool", ()),
        (1.5, "float32", ()),
        (1j, "complex64", ()),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([[[]]], "float32", (1, 1, 0)),
        ((1, 2), "int64", (2,)),
        (range(3), "int64", (3,)),
        ([True, 2], "int64", (2,)),
        ([True, 2, 3.0], "float32", (3,)),
        ([1, 2.0, 3j], "complex64", (3,)),
        ([[1, 2, 3]], "int64", (1, 3)),
        ([(1, 2), [3, 4]], "int64", (2, 2)),
        (array.array("d", [1.0, 2.0]), "float32", (2,)),
    ],
    ids=repr,
)
def test_dtype_and_shape_are_inferred(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Complex numbers take precedence over floats, ints and bools; the nesting gives the shape."""
    made = cd.tensor(data)
    assert made.dtype.name == dtype
    assert made.shape == shape
    assert made.tolist() == (list(data) if not isinstance(data, (bool, int, float, complex, list)) else _lists(data))


def _lists(data: Any) -> Any:
    return [_lists(d) for d in data] if isinstance(data, (list, tuple)) else data


@pytest.mark.parametrize("d", [d for d in cd.dtypes.ALL if d.category == 1], ids=lambda d: d.name)
def test_limits_of_every_integer_dtype_are_held(d: cd.dtype) -> None:
    """The smallest and the largest value are exact; one more raises PyTorch's error."""
    info = cd.iinfo(d)
    assert cd.tensor([info.min, info.max], dtype=d).tolist() == [info.min, info.max]
    with pytest.raises((RuntimeError, ValueError), match=r"without overflow|Overflow when unpacking long long"):
        cd.tensor([info.max + 1], dtype=d)


@pytest.mark.parametrize("d", [d for d in cd.dtypes.ALL if d.category == 2], ids=lambda d: d.name)
def test_floats_of_every_dtype(d: cd.dtype) -> None:
    """Infinities, NaN, both zeros and values out of range are accepted in every floating dtype."""
    made = cd.tensor([math.inf, -math.inf, math.nan, -0.0, 1.5, 2**70], dtype=d).tolist()
    assert made[:2] == [math.inf, -math.inf]
    assert math.isnan(made[2])
    assert math.copysign(1, made[3]) == -1
    assert made[4] == 1.5
    assert made[5] == (math.inf if d is cd.float16 else 2**70)
    assert cd.tensor(1e300, dtype=d).item() == (1e300 if d is cd.float64 else math.inf)


def test_numbers_are_cut_and_wrapped_as_in_pytorch() -> None:
    """Floats are truncated in an integer dtype, -1 wraps in uint8, and NaN is True."""
    assert cd.tensor([1.7, -1.7], dtype=cd.int32).tolist() == [1, -1]
    assert cd.tensor(-1, dtype=cd.uint8).item() == 255
    assert cd.tensor([math.nan, 0, 2], dtype=cd.bool).tolist() == [True, False, True]
    assert cd.tensor([1, 2.5], dtype=cd.complex128).tolist() == [1 + 0j, 2.5 + 0j]
    assert cd.tensor([1, 2], dtype=float).dtype is cd.float64


def test_array_scalars_and_tensors_without_dims_are_numbers() -> None:
    """NumPy scalars and tensors of one element are numbers with a dtype; tensors of several elements are sequences."""
    assert cd.tensor([np.float64(1.5)]).dtype is cd.float64
    assert cd.tensor(np.float32(1.5)).dtype is cd.float32
    assert cd.tensor([np.int32(1), np.int32(2)]).dtype is cd.int32
    assert cd.tensor([cd.tensor(1), cd.tensor(2.5)]).tolist() == [1.0, 2.5]
    assert cd.tensor([cd.tensor(1, dtype=cd.int8)]).dtype is cd.int8
    assert cd.tensor([cd.tensor([1.5]), cd.tensor([[2]])]).tolist() == [1.5, 2.0]
    assert cd.tensor([[cd.tensor([1.5])], [cd.tensor(2)]]).shape == (2, 1)
    assert cd.tensor([[1.0], cd.tensor([2.0])]).tolist() == [[1.0], [2.0]]
    assert cd.tensor([np.ones(1), np.ones(1)]).shape == (2, 1)
    assert cd.tensor([cd.tensor([1, 2]), cd.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert cd.tensor([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2, 3], [1, 2]], ValueError, r"expected sequence of length 3 at dim 1 \(got 2\)"),
        ([[[1], [2]], [[1], [2, 3]]], ValueError, r"expected sequence of length 1 at dim 2 \(got 2\)"),
        ([1, [2]], TypeError, r"'list' object cannot be interpreted as an integer"),
        ([[1], 2], TypeError, r"not a sequence"),
        ("abc", TypeError, r"new\(\): invalid data type 'str'"),
        (b"abc", TypeError, r"new\(\): invalid data type 'bytes'"),
        (["a"], ValueError, r"too many dimensions 'str'"),
        (None, RuntimeError, r"Could not infer dtype of NoneType"),
        ([1, None], RuntimeError, r"Could not infer dtype of NoneType"),
        ({1: 2}, RuntimeError, r"Could not infer dtype of dict"),
        ({1, 2}, RuntimeError, r"Could not infer dtype of set"),
        (object(), RuntimeError, r"Could not infer dtype of object"),
        (2**63, ValueError, r"Overflow when unpacking long long"),
    ],
    ids=lambda v: type(v).__name__ if type(v) is object else repr(v)[:24],
)
def test_what_is_no_tensor_is_refused_in_pytorchs_words(data: Any, error: type[Exception], words: str) -> None:
    """Ragged input, strings, None, dicts and numbers beyond int64 raise PyTorch's errors."""
    with pytest.raises(error, match=words):
        cd.tensor(data)


def test_values_that_the_dtype_cannot_hold_are_refused() -> None:
    """Overflow, NaN in integers and complex numbers in real dtypes are errors."""
    with pytest.raises(RuntimeError, match="value cannot be converted to type int32 without overflow"):
        cd.tensor(2**40, dtype=cd.int32)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
        cd.tensor([1, 300], dtype=cd.uint8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int32 without overflow"):
        cd.tensor(math.nan, dtype=cd.int32)
    with pytest.raises(TypeError, match="'complex' object cannot be interpreted as an integer"):
        cd.tensor([1, 2j], dtype=cd.int64)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        cd.tensor(1j, dtype=cd.float32)
    with pytest.raises(TypeError, match=r"dtype must be a candelabra\.dtype, not str"):
        cd.tensor(1, dtype="float32")


def test_copy_of_a_tensor_warns_and_is_a_leaf() -> None:
    """``tensor(t)`` warns with the better alternative, and returns a leaf with its own memory."""
    source = cd.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor, it is recommended to use"):
        made = cd.tensor(source)
    assert made.tolist() == [1.0, 1.0]
    assert not made.requires_grad
    made.zero_()
    assert source.tolist() == [1.0, 1.0]


def test_only_floating_tensors_may_require_grad() -> None:
    """``requires_grad=True`` creates a leaf of floats, and is an error for ints."""
    assert cd.tensor([1.0], requires_grad=True).is_leaf
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        cd.tensor([1], requires_grad=True)


@pytest.mark.usefixtures("lantern")
@pytest.mark.parametrize("device", ["lantern:1", "ember:0"])
def test_values_go_to_the_device_that_was_named(device: str) -> None:
    """Every function that creates tensors from values accepts ``device=``, also with a conversion."""
    assert str(cd.tensor([1, 2], device=device).device) == device
    assert cd.tensor([1.5, 2], dtype=cd.float16, device=device).tolist() == [1.5, 2.0]
    assert cd.tensor(np.ones(2, dtype="f4"), device=device).tolist() == [1.0, 1.0]
    assert str(cd.as_tensor(np.ones(2, dtype="f4"), device=device).device) == device
    near = cd.ones(2, device=device)
    assert str(near.new_tensor([1, 2]).device) == device
    assert str(near.new_zeros(2, 3).device) == device
    with pytest.raises(TypeError, match=r"cannot hold candelabra\.float64"):
        cd.tensor([1.0], dtype=cd.float64, device=device)


# -- sharing ----------------------------------------------------------------------------------------------------------
def test_as_tensor_shares_what_it_can() -> None:
    """A tensor is returned itself, an array shares its memory, a conversion copies."""
    here = cd.ones(2)
    assert cd.as_tensor(here) is here
    memory = np.zeros(2)
    cd.as_tensor(memory)[0] = 5
    assert memory[0] == 5
    assert cd.as_tensor(memory, dtype=cd.float32).dtype is cd.float32
    assert cd.as_tensor([1, 2]).tolist() == [1, 2]


def test_asarray_follows_its_copy_argument() -> None:
    """``copy=True`` copies, ``copy=False`` shares memory or raises."""
    memory = np.zeros(2)
    cd.asarray(memory, copy=True)[0] = 5
    assert memory[0] == 0
    cd.asarray(memory, copy=False)[0] = 5
    assert memory[0] == 5
    leaf = cd.ones(2, requires_grad=True)
    assert cd.asarray(leaf) is leaf
    assert not cd.asarray(leaf, requires_grad=False).requires_grad
    assert cd.asarray([1.0], requires_grad=True).requires_grad
    assert cd.asarray(bytearray(b"\0\0\x80?"), dtype=cd.float32).tolist() == [1.0]
    with pytest.raises(ValueError, match="can't alias arbitrary sequence into a tensor"):
        cd.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Double' into dtype 'Float'"):
        cd.asarray(memory, dtype=cd.float32, copy=False)


@pytest.mark.usefixtures("lantern")
def test_asarray_does_not_alias_across_devices() -> None:
    """``copy=False`` with another device is an error."""
    with pytest.raises(ValueError, match=r"can't alias tensor on device '.*' into device 'lantern:0'"):
        cd.asarray(cd.ones(2), device="lantern", copy=False)


def test_frombuffer_shares_writable_memory() -> None:
    """A tensor over a bytearray sees its changes; offset and count select a part."""
    memory = bytearray(b"\1\0\2\0\3\0\4\0")
    made = cd.frombuffer(memory, dtype=cd.int16, offset=2, count=2)
    assert made.tolist() == [2, 3]
    memory[2] = 7
    assert made.tolist() == [7, 3]
    assert cd.frombuffer(memory, dtype=cd.bfloat16).dtype is cd.bfloat16
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert cd.frombuffer(b"\1\2", dtype=cd.uint8).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"buffer": bytearray(8), "offset": 1}, r"buffer length \(7 bytes\) after offset \(1 bytes\)"),
        ({"buffer": bytearray(8), "count": 3}, r"requested buffer length \(3 \* 4 bytes\) after offset"),
        ({"buffer": bytearray(8), "count": 0}, r"both buffer length \(8\) and count \(0\) must not be 0"),
        ({"buffer": bytearray(8), "offset": 9}, r"offset \(9 bytes\) must be non-negative and no greater than buffer"),
        ({"buffer": 3}, r"object does not implement Python buffer protocol"),
    ],
    ids=["offset", "count", "nothing", "outside", "no buffer"],
)
def test_frombuffer_counts_bytes(arguments: dict[str, Any], words: str) -> None:
    """A number of bytes that is not a multiple of the element size, or too small, is a ValueError."""
    with pytest.raises(ValueError, match=words):
        cd.frombuffer(dtype=cd.int32, **arguments)


# -- like another tensor, and older ways ------------------------------------------------------------------------------
def test_new_methods_take_over_dtype_and_device() -> None:
    """``x.new_*`` has the dtype of x unless another is passed."""
    like = cd.ones(2, dtype=cd.int32)
    assert like.new_tensor([1.5, 2]).tolist() == [1, 2]
    assert like.new_full((2,), 7).dtype is cd.int32
    assert like.new_zeros(2, 3).shape == (2, 3)
    assert like.new_zeros((2, 3), dtype=cd.float64).dtype is cd.float64
    assert like.new_ones(2).tolist() == [1, 1]
    assert like.new_empty(0).shape == (0,)
    with pytest.warns(UserWarning, match=r"rather than tensor.new_tensor\(sourceTensor\)"):
        assert like.new_tensor(cd.ones(1)).dtype is cd.int32


def test_legacy_constructor_takes_sizes_or_values() -> None:
    """``Tensor(2, 3)`` has a shape, ``Tensor([2, 3])`` has values, ``Tensor()`` is empty."""
    assert cd.Tensor(2, 3).shape == (2, 3)
    assert cd.Tensor(5).shape == (5,)
    assert cd.Tensor(cd.Size([2, 3])).shape == (2, 3)
    assert cd.Tensor([2, 3]).tolist() == [2.0, 3.0]
    assert cd.Tensor(np.ones(2)).dtype is cd.float32
    assert cd.Tensor().shape == (0,)
    assert cd.Tensor(cd.ones(2, dtype=cd.int32)).dtype is cd.int32
    with pytest.raises(TypeError, match=r"new\(\): data must be a sequence \(got float\)"):
        cd.Tensor(2.5)


def test_subclass_is_made_of_values_too() -> None:
    """A subclass of Tensor has the same constructor."""

    class Named(cd.Tensor):
        """A tensor with a name."""

    made = Named([1, 2])
    assert type(made) is Named
    assert made.tolist() == [1.0, 2.0]


def test_scalar_tensor_has_the_default_dtype() -> None:
    """``scalar_tensor(3)`` is a float."""
    assert cd.scalar_tensor(3).dtype is cd.float32
    assert cd.scalar_tensor(3, dtype=cd.int32).item() == 3
