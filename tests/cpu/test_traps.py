"""Cases in which NumPy differs from PyTorch, warns, or returns a wrong type: one test each."""

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.errors import IntegerDivisionByZero
from candelabra.library import open_device, wrap
from candelabra_cpu.backend import FROM_NUMPY

INF, NAN = math.inf, math.nan


def tensor(values: Any, dtype: Any = None) -> Any:
    """Return a tensor of these values."""
    array = np.array(values, dtype)
    instance = open_device()
    return wrap(array, instance.keys_for(FROM_NUMPY[array.dtype]))


def to_list(x: Any) -> Any:
    """Return the elements as Python numbers."""
    return x._payload.tolist()


def same(actual: Any, expected: list[float]) -> None:
    """Assert that all elements are equal, with NaN equal to NaN and -0 different from 0."""
    np.testing.assert_array_equal(actual._payload, np.array(expected, actual._payload.dtype))
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual._payload)[numbers], np.signbit(np.array(expected))[numbers])


@pytest.mark.parametrize("divisor", [0, tensor([0, 2, 0])], ids=["number", "tensor"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
def test_integers_divided_by_zero_raise(name: str, divisor: Any) -> None:
    """Dividing integers by zero raises PyTorch's RuntimeError and Python's ZeroDivisionError instead of a warning."""
    from candelabra.library import OPERATORS

    with pytest.raises(IntegerDivisionByZero, match="ZeroDivisionError: integer division or modulo by zero") as caught:
        OPERATORS[name](tensor([7, -7, 3]), divisor)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, ZeroDivisionError)


def test_a_failed_division_in_place_changes_nothing() -> None:
    """An in-place division that raises does not change the tensor and its version."""
    x = tensor([7, -7, 3])
    with pytest.raises(ZeroDivisionError, match="by zero"):
        x //= tensor([2, 0, 1])
    assert to_list(x) == [7, -7, 3]
    assert x._version == 0


def test_integers_to_negative_powers() -> None:
    """A negative Python number as exponent raises; a tensor gives the integer part of 1 / x**n."""
    with pytest.raises(RuntimeError, match=r"Integers to negative integer powers are not allowed\."):
        tensor([2, 3]) ** -1
    assert to_list(tensor([1, -1, -1, 2, 0, 3]) ** tensor([-2, -1, -2, -1, -1, 2])) == [1, -1, 1, 0, 0, 9]
    assert to_list(2 ** tensor([-1, 0, 3])) == [0, 1, 8]


def test_powers_at_the_corners() -> None:
    """0**0, NaN**0 and 1**NaN are 1; a negative base with a fraction is NaN; 0**-1 is infinite."""
    assert to_list(tensor([0.0, NAN, -2.0, INF]) ** 0) == [1, 1, 1, 1]
    assert to_list(tensor([1.0]) ** NAN) == [1]
    assert to_list(tensor([0]) ** 0) == [1]
    same(tensor([-2.0, 4.0]) ** 0.5, [NAN, 2.0])
    same(tensor([0.0, -INF]) ** -1, [INF, -0.0])
    same(tensor([-INF, -2.0]) ** 3, [-INF, -8.0])
    assert to_list(tensor([0j]) ** 0) == [1]


@pytest.mark.parametrize("shift", [64, 300, -1, 2**40])
def test_shifts_out_of_range(shift: int) -> None:
    """A shift by at least the width, or by a negative number, gives 0, or -1 for negative numbers shifted right."""
    assert to_list(tensor([7, -7]) << shift) == [0, 0]
    assert to_list(tensor([7, -7]) >> shift) == [0, -1]
    assert to_list(tensor([7, -7], np.int8) << shift) == [0, 0]
    assert to_list(tensor([7, 200], np.uint8) >> shift) == [0, 0]


def test_numbers_combined_with_small_integers_wrap() -> None:
    """``uint8 + 300`` wraps as in C; so do int8 and in-place forms."""
    x = tensor([200], np.uint8)
    assert to_list(x + 300) == [244]
    assert to_list(x - 300) == [156]
    assert to_list(tensor([100], np.int8) * 300) == [(100 * 44 + 128) % 256 - 128]
    x += 300
    assert to_list(x) == [244]


def test_sign_of_nan() -> None:
    """The sign of NaN is NaN, that of zeros 0."""
    same(tensor([NAN, -3.0, INF, 0.0]).sign(), [NAN, -1.0, 1.0, 0.0])


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_rounding_gives_memory_of_its_own(name: str, dtype: Any) -> None:
    """Rounding integers creates a new array too."""
    x = tensor([1, 2], dtype)
    y = getattr(x, name)()
    assert not np.shares_memory(x._payload, y._payload)
    assert to_list(y) == [1, 2]


def test_overflow_and_invalid_are_silent() -> None:
    """No warning is emitted: float16 overflows to infinity, logarithms of negative numbers are NaN."""
    assert to_list(tensor([65504.0], np.float16) * 2) == [INF]
    assert to_list(tensor([1.0], np.float16) + 1e10) == [INF]
    assert to_list(tensor([1e300]).exp()) == [INF]
    assert math.isnan(to_list(tensor([-1.0]).log())[0])
    assert to_list(tensor([0.0]).log()) == [-INF]
    assert to_list(tensor([1.0]) / 0) == [INF]


@pytest.mark.parametrize("name", ["int64", "int8", "uint8", "bool"])
def test_casts_of_what_is_no_number_are_silent(name: str) -> None:
    """NaN and infinities give an unspecified integer without a warning, and True as bool."""
    from candelabra._operators.conversion.dtype_and_device import cast
    from candelabra.dtypes import BY_NAME

    actual = cast(tensor([NAN, INF, -INF, 1.5]), dtype=BY_NAME[name])
    assert actual.dtype.name == name
    assert to_list(actual)[-1] == 1
    if name == "bool":
        assert to_list(actual) == [True] * 4


def test_bools_are_not_subtracted() -> None:
    """The record refuses the difference of bools on every device."""
    with pytest.raises(RuntimeError, match=r"not implemented for|logical_xor"):
        tensor([True]) - tensor([True])


def test_floor_division_of_floats() -> None:
    """The floor division of floats equals Python's and PyTorch's, for infinities too."""
    x = tensor([7.0, -7.0, INF, NAN, 0.0, -0.0, 5.0])
    same(x // 2, [3, -4, NAN, NAN, 0, -0.0, 2])
    same(x // INF, [0, -1, NAN, NAN, 0, -0.0, 0])
    same(x // 0, [INF, -INF, INF, NAN, NAN, NAN, INF])


def test_remainders_of_floats() -> None:
    """The remainder has the divisor's sign, for infinities too; fmod the dividend's."""
    x = tensor([7.0, -7.0, INF, NAN, 5.0])
    same(x % 2, [1, 1, NAN, NAN, 1])
    same(x % INF, [7, INF, NAN, NAN, 5])
    same(x % -INF, [-INF, -7, NAN, NAN, -INF])
    same(x % 0, [NAN] * 5)
    same(cd.fmod(x, INF), [7, -7, NAN, NAN, 5])


def test_complex_numbers() -> None:
    """The modulus is real, of the real dtype that corresponds to the complex one."""
    x = tensor([3 + 4j], np.complex64).abs()
    assert x.dtype.name == "float32"
    assert to_list(x) == [5]


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_"])
def test_overlapping_arguments_in_place(name: str) -> None:
    """Operands with gaps may share a part of the target: the result equals the functional one."""
    for forward in (True, False):
        x = cd.arange(18.0).reshape(3, 6)
        target, other = (x[:, 1:], x[:, :-1]) if forward else (x[:, :-1], x[:, 1:])
        expected = to_list(getattr(target, name[:-1])(other))
        assert to_list(getattr(target, name)(other)) == expected


def test_in_place_on_what_is_not_contiguous() -> None:
    """An in-place operator writes through strides, and supports the tensor itself as operand."""
    x = cd.zeros(4, 6)
    x.t()[::2].add_(1)
    assert to_list(x) == [[1, 0, 1, 0, 1, 0]] * 4
    x.add_(x)
    assert to_list(x) == [[2, 0, 2, 0, 2, 0]] * 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["erf", "exp", "exp2", "log1p", "tanh", "sqrt", "floor"])
def test_functions_keep_the_dtype(name: str, dtype: str) -> None:
    """A function of a half type returns that half type, though SciPy supports only wider ones."""
    from candelabra.dtypes import BY_NAME
    from candelabra_cpu.backend import TO_NUMPY

    assert getattr(cd.ones(3, dtype=BY_NAME[dtype]), name)()._payload.dtype == TO_NUMPY[BY_NAME[dtype]]


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((3, 4), cd.float32, "a last dimension of size 2"),
        ((3, 1), cd.float64, "a last dimension of size 2"),
        ((3, 4), cd.float16, "only supported for float and double tensors, but got candelabra.float16"),
        ((), cd.float32, "must have one or more dimensions"),
        ((2, 3), cd.float32, "a last dimension with stride 1"),
    ],
)
def test_only_adjacent_pairs_are_complex_numbers(shape: tuple[int, ...], dtype: Any, text: str) -> None:
    """NumPy would read four floats as two complex numbers, of which one was dropped, and four halves as one."""
    x = cd.ones(shape, dtype=dtype)
    with pytest.raises(RuntimeError, match=text):
        cd.view_as_complex(x.t() if shape == (2, 3) else x)


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16])
def test_half_types_overflow_in_silence(dtype: cd.dtype) -> None:
    """A float32 value outside the range of the half type becomes infinity without a warning (an error here)."""
    large = cd.full((2, 2), cd.finfo(dtype).max, dtype=dtype)
    assert (large @ large).isinf().all()
    assert cd.xlogy(large, large).isinf().all()
    if dtype is cd.float16:
        assert cd.special.digamma(cd.full((2,), 2.0**-24, dtype=dtype)).isinf().all()
