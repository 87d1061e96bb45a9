"""The functions of candelabra.array_api, compared with NumPy's, and the standard's additional requirements."""

from __future__ import annotations

import cmath
import math

import candelabra as cd
import candelabra.array_api as xp
import numpy as np
import pytest

from tests.operators.array_api_samples import DTYPES, FLOATING, NUMERIC, REAL_NUMERIC, check, sample

# -- elementwise ------------------------------------------------------------------------------------------------------
UNARY = {
    "abs": NUMERIC, "acos": FLOATING, "acosh": FLOATING, "asin": FLOATING, "asinh": FLOATING, "atan": FLOATING,
    "atanh": FLOATING, "bitwise_invert": [*DTYPES["bool"], *DTYPES["integer"]], "ceil": REAL_NUMERIC, "conj": NUMERIC,
    "cos": FLOATING, "cosh": FLOATING, "exp": FLOATING, "expm1": FLOATING, "floor": REAL_NUMERIC, "imag": FLOATING,
    "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC, "log": FLOATING, "log1p": FLOATING, "log2": FLOATING,
    "log10": FLOATING, "logical_not": DTYPES["bool"], "negative": NUMERIC, "positive": NUMERIC, "real": NUMERIC,
    "reciprocal": FLOATING, "round": NUMERIC, "sign": NUMERIC, "signbit": DTYPES["real"], "sin": FLOATING,
    "sinh": FLOATING, "sqrt": FLOATING, "square": NUMERIC, "tan": FLOATING, "tanh": FLOATING, "trunc": REAL_NUMERIC,
}  # fmt: skip
BINARY = {
    "add": NUMERIC, "atan2": DTYPES["real"], "bitwise_and": DTYPES["integer"], "bitwise_or": DTYPES["integer"],
    "bitwise_xor": DTYPES["integer"], "copysign": DTYPES["real"], "divide": FLOATING, "equal": NUMERIC,
    "floor_divide": REAL_NUMERIC, "greater": REAL_NUMERIC, "greater_equal": REAL_NUMERIC, "hypot": DTYPES["real"],
    "less": REAL_NUMERIC, "less_equal": REAL_NUMERIC, "logaddexp": DTYPES["real"], "logical_and": DTYPES["bool"],
    "logical_or": DTYPES["bool"], "logical_xor": DTYPES["bool"], "maximum": REAL_NUMERIC, "minimum": REAL_NUMERIC,
    "multiply": NUMERIC, "nextafter": DTYPES["real"], "not_equal": NUMERIC, "pow": FLOATING, "remainder": REAL_NUMERIC,
    "subtract": NUMERIC,
}  # fmt: skip
UNIT = {"acos", "asin", "atanh"}
POSITIVE = {"acosh", "log", "log1p", "log2", "log10", "sqrt", "pow", "floor_divide", "remainder", "divide"}


def interval(name: str) -> dict[str, float]:
    """Return an interval on which a function is real and finite."""
    return {"low": -1, "high": 1} if name in UNIT else {"low": 1} if name in POSITIVE else {}


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, dtypes in UNARY.items() for d in dtypes])
def test_function_of_one_array_is_numpys(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Functions of one array give NumPy's values in the standard's dtype, for arrays of any rank."""
    for shape in ((4, 5), (), (0, 3)):
        x = sample(rng, dtype, *shape, **interval(name))
        check(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x))


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, dtypes in BINARY.items() for d in dtypes])
def test_function_of_two_arrays_is_numpys(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Functions of two arrays broadcast and give NumPy's values in the standard's dtype."""
    for shapes in (((4, 1), (5,)), ((), (3,)), ((0, 1), (2,))):
        x1, x2 = (sample(rng, dtype, *shape, **interval(name)) for shape in shapes)
        check(getattr(xp, name)(xp.asarray(x1), xp.asarray(x2)), getattr(np, name)(x1, x2))


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", DTYPES["integer"])
def test_shifts_are_numpys(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Shifts by less than the width keep the dtype, and right shifts keep the sign."""
    x, by = sample(rng, dtype, 6), np.array([0, 1, 2, 3, 1, 0], dtype)
    check(getattr(xp, name)(xp.asarray(x), xp.asarray(by)), getattr(np, name)(x, by))


MIXED = [
    ("int8", "int32"), ("uint8", "int8"), ("uint16", "int8"), ("uint32", "int32"), ("float32", "float64"),
    ("float32", "complex64"), ("float64", "complex64"), ("complex64", "complex128"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), MIXED)
def test_rank_does_not_affect_promotion(first: str, second: str, rng: np.random.Generator) -> None:
    """A 0-d array takes part in promotion as any other, in functions and operators, on either side."""
    flat, single = sample(rng, first, 3), sample(rng, second)
    want = np.add(flat, single[None])
    check(xp.add(xp.asarray(flat), xp.asarray(single)), want)
    check(xp.asarray(flat) + xp.asarray(single), want)
    check(xp.asarray(single) + xp.asarray(flat), want)
    assert xp.result_type(xp.asarray(flat), xp.asarray(single)).name == want.dtype.name


@pytest.mark.parametrize("dtype", NUMERIC)
def test_number_takes_the_arrays_dtype(dtype: str, rng: np.random.Generator) -> None:
    """A Python number of the array's kind does not change its dtype, on either side, with dims or without."""
    for shape in ((3,), ()):
        x = xp.asarray(sample(rng, dtype, *shape))
        assert (x + 2).dtype is (2 + x).dtype is xp.multiply(x, 2).dtype is xp.subtract(5, x).dtype is x.dtype


@pytest.mark.parametrize(
    "name", ["hypot", "logaddexp", "atan2", "copysign", "nextafter", "maximum", "pow", "remainder"]
)
def test_functions_of_two_take_a_number_on_either_side(name: str, rng: np.random.Generator) -> None:
    """A number is treated as a 0-d array with the other operand's dtype."""
    x = sample(rng, "float32", 4, low=1)
    check(getattr(xp, name)(xp.asarray(x), 2.0), getattr(np, name)(x, np.float32(2)))
    check(getattr(xp, name)(2.0, xp.asarray(x)), getattr(np, name)(np.float32(2), x))


def test_functions_of_two_require_an_array() -> None:
    """Two numbers are refused, and so is a list."""
    with pytest.raises(TypeError, match=r"add\(\) expects at least one array, got int, int"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match=r"exp\(\) expects an array, not list"):
        xp.exp([1.0])
    with pytest.raises(TypeError, match=r"where\(\) expects at least one array, got int, int"):
        xp.where(xp.asarray([True]), 1, 2)


@pytest.mark.parametrize("dtype", REAL_NUMERIC)
def test_clip_keeps_the_dtype(dtype: str, rng: np.random.Generator) -> None:
    """Bounds may be numbers, arrays that broadcast, or absent; numbers outside the dtype's range have no effect."""
    x = sample(rng, dtype, 3, 4)
    low, high = sample(rng, dtype, 4, high=2), sample(rng, dtype, 3, 1, low=3)
    check(xp.clip(xp.asarray(x), 1, 4), np.clip(x, 1, 4))
    check(xp.clip(xp.asarray(x), xp.asarray(low), xp.asarray(high)), np.clip(x, low, high))
    check(xp.clip(xp.asarray(x), max=3), np.minimum(x, np.asarray(3, dtype)))
    check(xp.clip(xp.asarray(x), -(1 << 70), 1 << 70), x)
    assert xp.clip(y := xp.asarray(x)) is not y


# -- creation ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "arguments", [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (0, 1, 0.25), (3, 1), (1.5,), (0,), (5, 0, -1.5), (-3, 3, 2)]
)
def test_arange_is_numpys(arguments: tuple[float, ...]) -> None:
    """Ranges of ints are int64, others the default floating dtype; a step in the wrong direction gives an empty
    array."""
    want = np.arange(*arguments)
    check(xp.arange(*arguments), want if want.dtype.kind == "i" else want.astype(np.float32))


def test_arange_requires_a_nonzero_step() -> None:
    """A step of 0 is an error."""
    with pytest.raises(ValueError, match="expects a nonzero step, got 0"):
        xp.arange(1, 2, 0)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
def test_linspace_is_numpys(num: int, endpoint: bool) -> None:
    """The end may be included, and the numbers may be complex."""
    got = xp.linspace(-2.0, 5.0, num, endpoint=endpoint, dtype=xp.float64)
    check(got, np.linspace(-2.0, 5.0, num, endpoint=endpoint))
    check(xp.linspace(1, 2 - 3j, num, endpoint=endpoint), np.linspace(1, 2 - 3j, num, endpoint=endpoint).astype("c8"))


@pytest.mark.parametrize("k", [-9, -2, -1, 0, 1, 3, 9])
def test_eye_has_any_diagonal(k: int) -> None:
    """The ones are on the k-th diagonal, which may be outside."""
    check(xp.eye(3, 4, k=k), np.eye(3, 4, k=k, dtype=np.float32))
    check(xp.eye(3, k=k, dtype=xp.int8), np.eye(3, k=k, dtype=np.int8))


def test_filled_arrays() -> None:
    """zeros, ones, full, empty and their ``_like`` forms accept shapes as ints and tuples, dtypes and devices."""
    check(xp.zeros(3), np.zeros(3, np.float32))
    check(xp.ones((2, 0)), np.ones((2, 0), np.float32))
    check(xp.full((2,), 7), np.full((2,), 7))
    check(xp.full((), 1j), np.full((), 1j, np.complex64))
    check(xp.full((1,), True), np.full((1,), True))
    x = xp.zeros((2, 3), dtype=xp.int16)
    assert xp.empty((2, 3), dtype=xp.uint8).shape == xp.empty_like(x).shape == (2, 3)
    check(xp.ones_like(x), np.ones((2, 3), np.int16))
    check(xp.zeros_like(x, dtype=xp.float64, device=x.device), np.zeros((2, 3)))
    check(xp.full_like(x, 4), np.full((2, 3), 4, np.int16))
    with pytest.raises(OverflowError, match="does not fit the default integer dtype int64"):
        xp.asarray(1 << 63)
    check(xp.asarray(1 << 63, dtype=xp.uint64), np.asarray(1 << 63, np.uint64))


def test_asarray_shares_by_default() -> None:
    """Arrays are shared if possible, copied on request, and refused if copy=False forbids a required copy."""
    x = xp.asarray([[1, 2], [3, 4]])
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    copied[0, 0] = 9
    assert int(x[0, 0]) == 1
    plain = cd.ones(2)
    shared = xp.asarray(plain)
    shared[0] = 5
    assert type(plain) is cd.Tensor
    assert plain.tolist() == [5, 1]
    host = np.zeros(2)
    xp.asarray(host)[1] = 3
    assert host.tolist() == [0, 3]
    assert xp.asarray(np.float64(0.1)).dtype is xp.float64
    with pytest.raises(ValueError, match="which copy=False forbids"):
        xp.asarray(3, copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype"):
        xp.asarray(x, dtype=xp.float32, copy=False)


def test_from_dlpack_shares_memory() -> None:
    """An exporter's memory is shared, or copied on request."""
    host = np.arange(3.0)
    shared, copied = xp.from_dlpack(host), xp.from_dlpack(host, copy=True)
    host[0] = 8
    check(shared, host)
    check(copied, np.arange(3.0))
    check(xp.from_dlpack(shared), host)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid_is_numpys(indexing: str, count: int) -> None:
    """The order is Cartesian by default, and matrix order on request."""
    vectors = [np.arange(2 + i) for i in range(count)]
    got = xp.meshgrid(*map(xp.asarray, vectors), indexing=indexing)
    assert type(got) is tuple
    for one, want in zip(got, np.meshgrid(*vectors, indexing=indexing), strict=True):
        check(one, want)


def test_meshgrid_refuses() -> None:
    """Another order, several dtypes, and arrays that are not 1-d are errors."""
    with pytest.raises(ValueError, match="expects indexing 'xy' or 'ij', not 'yx'"):
        xp.meshgrid(xp.arange(2), indexing="yx")
    with pytest.raises(ValueError, match="one-dimensional arrays of one dtype"):
        xp.meshgrid(xp.arange(2), xp.ones(2))


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_triangles_are_numpys(k: int, rng: np.random.Generator) -> None:
    """tril and triu of stacks of matrices start at the k-th diagonal."""
    x = sample(rng, "float64", 2, 3, 4)
    check(xp.tril(xp.asarray(x), k=k), np.tril(x, k=k))
    check(xp.triu(xp.asarray(x), k=k), np.triu(x, k=k))


# -- the standard's special cases -----------------------------------------------------------------------------------
def test_floor_division_of_infinities_is_the_standards() -> None:
    """``floor(x1 / x2)`` with infinities follows the standard in functions, operators and in place; finite ones
    Python."""
    x1, x2 = [math.inf, -math.inf, 1.0, -1.0, 1.0, math.inf, 1.0], [2.0, 2.0, -math.inf, math.inf, 0.1, math.inf, 0.0]
    want = [math.inf, -math.inf, -0.0, -0.0, 9.0, math.nan, math.inf]
    inplace = xp.asarray(x1, dtype=xp.float64)
    inplace //= xp.asarray(x2, dtype=xp.float64)
    a, b = (xp.asarray(x, dtype=xp.float64) for x in (x1, x2))
    for got in (xp.floor_divide(a, b), a // b, inplace):
        np.testing.assert_array_equal(got.numpy(), want)
        assert np.signbit(got.numpy()).tolist()[:4] == [False, True, True, True]
    assert (a[:1] // 2).tolist() == (math.inf // xp.asarray([2.0])).tolist() == [math.inf]


INF, NAN = math.inf, math.nan
EXPM1 = [
    (complex(INF, 0), complex(INF, 0)), (complex(-INF, INF), -1), (complex(INF, INF), complex(INF, NAN)),
    (complex(-INF, NAN), -1), (complex(INF, NAN), complex(INF, NAN)), (complex(NAN, 0), complex(NAN, 0)),
    (complex(NAN, 1), complex(NAN, NAN)), (complex(1, INF), complex(NAN, NAN)), (complex(1000, 0), complex(INF, 0)),
    (complex(-INF, 2), -1), (complex(-0.0, 0), 0), (1e-20 + 1e-20j, 1e-20 + 1e-20j), (1e-9j, complex(-5e-19, 1e-9)),
]  # fmt: skip


@pytest.mark.parametrize(("z", "want"), EXPM1)
@pytest.mark.parametrize("size", [(), (40000,)])
def test_expm1_of_complex_numbers_at_the_edges(z: complex, want: complex, size: tuple[int, ...]) -> None:
    """Infinities and NaN have the standard's values, and arguments near 0 full accuracy, for one number and many."""
    x = xp.full(size, z, dtype=xp.complex128)
    for found in (xp.expm1(x), x.expm1_()):
        got = complex(found.reshape(-1)[-1].item())
        for part, expected in ((got.real, complex(want).real), (got.imag, complex(want).imag)):
            assert part == pytest.approx(expected, rel=1e-15, abs=0, nan_ok=True)
            assert part or not np.signbit(part)


def test_sign_of_complex_zeros_has_no_sign() -> None:
    """The sign of every zero is 0 + 0j; other numbers are divided by their modulus."""
    zeros = xp.asarray([complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)])
    assert not np.signbit(xp.sign(zeros).numpy().view("float32")).any()
    assert complex(xp.sign(xp.asarray(3 - 4j, dtype=xp.complex128))) == pytest.approx(
        cmath.rect(1, cmath.phase(3 - 4j))
    )


@pytest.mark.parametrize("b", [0.5, 2.0, 4.0, 0.0])
@pytest.mark.parametrize("size", [(), (40000,)])
def test_tanh_of_infinite_complex_numbers(b: float, size: tuple[int, ...]) -> None:
    """The result is ±1 with a zero of the imaginary part's sign, whatever the angle; in place too."""
    for z in (complex(INF, b), complex(INF, -b), complex(-INF, b), complex(-INF, -b)):
        x = xp.full(size, z, dtype=xp.complex64)
        for found in (xp.tanh(x), x.tanh_()):
            got = complex(found.reshape(-1)[-1].item())
            assert (got, math.copysign(1, got.imag)) == (math.copysign(1, z.real), math.copysign(1, z.imag))
