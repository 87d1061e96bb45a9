"""Random tensors: values follow the specification, arguments are PyTorch's, and errors do not change the generator."""

import math
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._random.generator import Generator
from candelabra_cpu import philox

INF, NAN = math.inf, math.nan


def to_list(x: Any) -> Any:
    """Return the elements as Python numbers."""
    return x._payload.tolist()


def fresh() -> Generator:
    """Return the generator of the specification's known answers, section 12."""
    return Generator().manual_seed(20240229).set_offset(41)


def test_known_answers() -> None:
    """The first values are those printed in the specification."""
    assert to_list(cd.rand(2, generator=fresh())) == [float.fromhex("0x1.9bb3e4p-2"), float.fromhex("0x1.8aa5d6p-1")]
    found = to_list(cd.randn(2, dtype=cd.float64, generator=fresh()))
    assert found == [float.fromhex("0x1.6bb9b56aa4a65p-1"), float.fromhex("-0x1.02fcef7d5343ep-3")]
    assert to_list(cd.randint(10, (4,), generator=fresh())) == [7, 9, 9, 8]
    assert to_list(cd.randint(0, 10**12, (2,), generator=fresh())) == [770796498144, 971182606036]
    assert to_list(cd.randperm(8, generator=fresh())) == [7, 5, 6, 0, 3, 4, 2, 1]
    assert to_list(cd.zeros(8).bernoulli_(0.5, generator=fresh())) == [1, 0, 1, 0, 1, 0, 0, 0]
    weights = cd.zeros(4)
    weights._payload[:] = [1, 0, 2.5, 0.5]
    assert to_list(cd.multinomial(weights, 8, True, generator=fresh())) == [2, 3, 3, 2, 2, 2, 2, 0]
    assert to_list(cd.multinomial(weights, 3, generator=fresh())) == [2, 0, 3]


def test_draws_move_the_offset_by_what_is_specified() -> None:
    """Two draws of complete counters equal one draw of both; an empty draw leaves the offset."""
    a, b = fresh(), fresh()
    together = to_list(cd.rand(16, generator=a))
    assert to_list(cd.rand(8, generator=b)) + to_list(cd.rand(2, 4, generator=b).reshape(8)) == together
    cd.rand(0, 3, generator=a)
    assert a.get_offset() == b.get_offset() == 43


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_new_tensors(name: str, dtype: str) -> None:
    """Shape, dtype, device and requires_grad are as requested."""
    d = getattr(cd, dtype)
    for x in (getattr(cd, name)(2, 3, dtype=d), getattr(cd, name)((2, 3), dtype=d, requires_grad=True)):
        assert (x.shape, x.dtype) == ((2, 3), d)
    assert x.requires_grad
    assert getattr(cd, name)(size=(4,)).shape == (4,)
    assert getattr(cd, name + "_like")(x).dtype is d
    assert getattr(cd, name)(()).shape == ()


def test_integers() -> None:
    """``randint`` accepts (low, high, size), (high, size) and keywords, and any dtype that holds the range."""
    assert cd.randint(3, 5, (100,)).dtype is cd.int64
    assert set(to_list(cd.randint(3, 5, (100,)))) == {3, 4}
    assert set(to_list(cd.randint(high=2, size=(100,)))) == {0, 1}
    assert cd.randint(0, 256, (3,), dtype=cd.uint8).dtype is cd.uint8
    assert set(to_list(cd.randint(-2, 0, (50,), dtype=cd.float16))) == {-2.0, -1.0}
    assert set(to_list(cd.randint_like(cd.zeros(50), 4, 6))) == {4.0, 5.0}
    assert sorted(to_list(cd.randperm(6, dtype=cd.int32))) == list(range(6))


def test_out() -> None:
    """``out=`` receives the numbers in its dtype."""
    out = cd.zeros(3, dtype=cd.float64)
    generator = fresh()
    assert cd.rand(3, out=out, generator=generator) is out
    assert to_list(out) == philox.uniform(20240229, 41, (3,), np.float64).tolist()


def test_normal_numbers_of_tensors() -> None:
    """The result has the broadcast shape of the parameters, the first tensor's dtype, and no gradient."""
    mean = cd.zeros(2, 1, dtype=cd.float64, requires_grad=True)
    made = cd.normal(mean, cd.ones(3))
    assert (made.shape, made.dtype, made.requires_grad) == ((2, 3), cd.float64, False)
    assert cd.normal(cd.ones(2), cd.ones(2, dtype=cd.float64)).dtype is cd.float32
    assert to_list(cd.normal(5.0, cd.zeros(2))) == [5, 5]
    out = cd.zeros(2)
    assert cd.normal(cd.ones(2), 0.0, out=out) is out
    assert to_list(out) == [1, 1]
    assert cd.normal(0.0, 1.0, (2, 3), dtype=cd.float16, requires_grad=True).requires_grad
    assert cd.normal(mean=0.0, std=1.0, size=4, layout=cd.strided).shape == (4,)


def test_integers_up_to_the_largest_of_the_dtype() -> None:
    """``random_(from, None)`` has a lower bound, ``random_(to)`` an upper bound, and ``random_()`` draws all values."""
    x = cd.zeros(500, dtype=cd.int8)
    assert min(to_list(x.random_(120, None))) == 120
    assert max(to_list(x)) == 127
    assert set(to_list(x.random_(to=2))) == {0, 1}
    assert min(to_list(x.random_())) >= 0
    assert max(to_list(cd.zeros(9, dtype=cd.bfloat16).random_())) <= 256


DATALESS: list[Callable[[Any], Any]] = [
    lambda x: cd.rand(2, 3, device="meta"),
    lambda x: cd.randn_like(x),
    lambda x: cd.randint(5, (2, 3), device="meta"),
    lambda x: cd.randint_like(x, 5),
    lambda x: cd.normal(x, cd.ones(3, device="meta")),
    lambda x: cd.bernoulli(x),
    lambda x: cd.bernoulli(x, 0.5),
    lambda x: cd.poisson(x),
    lambda x: cd.binomial(x, x),
    lambda x: x.uniform_(-1, 1),
    lambda x: x.normal_(1, 2),
    lambda x: x.log_normal_(),
    lambda x: x.exponential_(2),
    lambda x: x.geometric_(0.5),
    lambda x: x.cauchy_(),
    lambda x: x.random_(3, 5),
    lambda x: x.bernoulli_(x),
]


@pytest.mark.parametrize("call", DATALESS)
def test_tensors_without_data(call: Callable[[Any], Any]) -> None:
    """The device ``meta`` gives shapes and dtypes without reading values."""
    made = call(cd.empty(2, 3, device="meta"))
    assert (made.shape, made.device.type) == ((2, 3), "meta")
    assert cd.multinomial(cd.empty(2, 3, device="meta"), 2).shape == (2, 2)
    assert cd.randperm(4, device="meta").shape == (4,)


FILLERS: list[tuple[str, tuple[Any, ...], str]] = [
    ("uniform_", (-1, 1), "float32"),
    ("normal_", (2, 3), "float64"),
    ("exponential_", (2,), "float32"),
    ("random_", (), "int64"),
    ("random_", (10,), "uint8"),
    ("random_", (-3, 3), "float16"),
    ("random_", (), "bool"),
    ("bernoulli_", (0.3,), "int64"),
    ("geometric_", (0.5,), "int32"),
    ("log_normal_", (0, 1), "bfloat16"),
    ("cauchy_", (), "float64"),
    ("uniform_", (-1, 1), "complex64"),
    ("normal_", (), "bfloat16"),
]


@pytest.mark.parametrize(("name", "arguments", "dtype"), FILLERS)
def test_fillers(name: str, arguments: tuple[Any, ...], dtype: str) -> None:
    """In-place random functions write through strides, increment the version and return the tensor."""
    x = cd.zeros(40, 6, dtype=getattr(cd, dtype))
    view = x.t()[1::2]
    assert getattr(view, name)(*arguments, generator=fresh()) is view
    again = cd.zeros(3, 40, dtype=getattr(cd, dtype))
    getattr(again, name)(*arguments, generator=fresh())
    assert to_list(view) == to_list(again)
    assert (x._payload[:, ::2] == 0).all()
    assert x._version == 1
    assert len(np.unique(np.array(to_list(again)))) > 1


def test_scaled_draws() -> None:
    """``uniform_(a, b)`` and ``normal_(mean, std)`` scale the specified numbers, rounding each step."""
    u = philox.uniform(20240229, 41, (5,), np.float32)
    found = cd.zeros(5).uniform_(-2, 5, generator=fresh())
    assert to_list(found) == (u * np.float32(7) + np.float32(-2)).tolist()
    z = philox.normal(20240229, 41, (5,), np.float32)
    assert to_list(cd.zeros(5).normal_(1, 3, generator=fresh())) == (z * np.float32(3) + np.float32(1)).tolist()
    assert to_list(cd.normal(1.0, 3.0, (5,), generator=fresh())) == (z * np.float32(3) + np.float32(1)).tolist()
    assert to_list(cd.normal(cd.ones(5), 3.0, generator=fresh())) == (z * np.float32(3) + np.float32(1)).tolist()
    e = philox.exponential(20240229, 41, (5,), np.float32)
    assert to_list(cd.zeros(5).exponential_(4, generator=fresh())) == (e / np.float32(4)).tolist()


def test_distributions_have_their_moments() -> None:
    """Means of 20,000 numbers with a fixed seed are close to the distributions' means."""
    g = Generator().manual_seed(0)
    x = cd.zeros(20_000, dtype=cd.float64)
    for fill, mean, width in (
        (lambda: x.normal_(3, 2, generator=g), 3, 0.1),
        (lambda: x.uniform_(-1, 3, generator=g), 1, 0.1),
        (lambda: x.exponential_(0.5, generator=g), 2, 0.1),
        (lambda: x.geometric_(0.25, generator=g), 4, 0.2),
        (lambda: x.bernoulli_(0.2, generator=g), 0.2, 0.02),
        (lambda: x.random_(0, 11, generator=g), 5, 0.2),
        (lambda: x.log_normal_(0, 0.5, generator=g), math.exp(0.125), 0.05),
    ):
        fill()
        assert abs(x._payload.mean() - mean) < width
    x.cauchy_(2, 3, generator=g)
    assert abs(np.median(x._payload) - 2) < 0.2


def test_bernoulli() -> None:
    """Probabilities are per element or one for all; the dtype does not change."""
    p = cd.zeros(3, 4)
    p._payload[1] = 1
    assert to_list(cd.bernoulli(p)) == [[0] * 4, [1] * 4, [0] * 4]
    assert to_list(p.bernoulli()) == to_list(p)
    assert cd.bernoulli(cd.zeros(3, dtype=cd.int64), 1.0).dtype is cd.int64
    assert to_list(cd.zeros(3, 4).bernoulli_(p[:, :1])) == to_list(p)


def test_leaves_that_require_grad_are_not_filled() -> None:
    """A leaf, a view of a leaf, and expanded memory are refused; without recording a leaf is filled."""
    x = cd.zeros(3, requires_grad=True)
    generator = fresh()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.uniform_(generator=generator)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        cd.zeros(1).expand(3).normal_(generator=generator)
    assert generator.get_offset() == 41
    with cd.no_grad():
        x.uniform_(generator=generator)
    assert x.requires_grad
    assert x._version == 1


def test_a_filled_result_has_no_gradient_to_what_it_was() -> None:
    """The overwritten values get a gradient of zero."""
    x = cd.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    y.sum().backward()
    assert x.grad is not None
    assert to_list(x.grad) == [0, 0, 0]


def test_a_filled_view_has_no_gradient_to_what_it_was() -> None:
    """The other elements of the base keep their gradient."""
    for fill in (lambda v: v.random_(5), lambda v: v.bernoulli_(0.5), lambda v: v.bernoulli_(cd.ones(2))):
        x = cd.ones(2, 2, requires_grad=True)
        y = x * 3
        fill(y[0])
        y.sum().backward()
        assert x.grad is not None
        assert to_list(x.grad) == [[0, 0], [3, 3]]


BAD: list[tuple[Any, type[Exception], str]] = [
    (
        lambda g: cd.rand(2, dtype=cd.int64, generator=g),
        NotImplementedError,
        "\"uniform\" not implemented for 'Long': it takes floating dtypes",
    ),
    (
        lambda g: cd.randn(2, dtype=cd.int64, generator=g),
        NotImplementedError,
        '"normal" not implemented for',
    ),
    (lambda g: cd.rand(2, -1, generator=g), RuntimeError, r"negative dimension -1: \[2, -1\]"),
    (
        lambda g: cd.randint(5, 5, (2,), generator=g),
        RuntimeError,
        "expects 'from' to be less than 'to', but got from=5 >= to=5",
    ),
    (
        lambda g: cd.randint(0, 300, (2,), dtype=cd.uint8, generator=g),
        RuntimeError,
        "to - 1 is out of bounds for uint8_t",
    ),
    (
        lambda g: cd.randint(-5, 3, (2,), dtype=cd.uint8, generator=g),
        RuntimeError,
        "from is out of bounds for uint8_t",
    ),
    (
        lambda g: cd.randint(0, 3, (2,), dtype=cd.complex64, generator=g),
        RuntimeError,
        "check_random_bounds handles only",
    ),
    (lambda g: cd.randint(1.5, (2,), generator=g), TypeError, "must be int, not float"),
    (lambda g: cd.randint(3, 5, generator=g), TypeError, r"'size' \(position 2\) must be tuple of ints, not int"),
    (lambda g: cd.randint(3, generator=g), TypeError, r"randint\(\) received an invalid combination of arguments"),
    (lambda g: cd.randint_like(cd.zeros(2), 3, 3, generator=g), RuntimeError, "but got from=3 >= to=3"),
    (lambda g: cd.randperm(-1, generator=g), RuntimeError, "negative dimension -1"),
    (lambda g: cd.randperm(2.5, generator=g), TypeError, r"argument 'n' \(position 1\) must be int, not float"),
    (
        lambda g: cd.randperm(3, dtype=cd.bool, generator=g),
        NotImplementedError,
        "\"randperm\" not implemented for 'Bool'",
    ),
    (
        lambda g: cd.randperm(300, dtype=cd.uint8, generator=g),
        RuntimeError,
        "n cannot be greater than 256 for Byte type",
    ),
    (
        lambda g: cd.randperm(3000, dtype=cd.float16, generator=g),
        RuntimeError,
        "n cannot be greater than 2049 for Half",
    ),
    (lambda g: cd.normal(0.0, -1.0, (2,), generator=g), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda g: cd.normal(0.0, 1.0, generator=g), TypeError, "got two numbers without 'size'"),
    (
        lambda g: cd.normal(cd.tensor(0.0), 1.0, (2,), generator=g),
        TypeError,
        "accepts 'size', 'dtype' and 'device' only if mean",
    ),
    (lambda g: cd.normal(cd.zeros(2), 1.0, dtype=cd.int64, generator=g), TypeError, "an invalid combination of argume"),
    (lambda g: cd.normal(0.0, cd.ones(2) * -1, generator=g), RuntimeError, "normal expects all elements of std >= 0.0"),
    (
        lambda g: cd.normal(0.0, cd.ones(2) * 1j, generator=g),
        NotImplementedError,
        "\"normal\" not implemented for 'ComplexFloat': it takes real floating dtypes",
    ),
    (lambda g: cd.zeros(2).normal_(0, -1, generator=g), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda g: cd.zeros(2).uniform_(2, 1, generator=g), RuntimeError, r"but found from=2 > to=1"),
    (lambda g: cd.zeros(2).uniform_(NAN, 1, generator=g), RuntimeError, "from is out of bounds for float"),
    (lambda g: cd.zeros(2).uniform_(-3e38, 3e38, generator=g), RuntimeError, "in to-from to exceed the limit"),
    (lambda g: cd.zeros(2).random_(3, 3, generator=g), RuntimeError, "but got from=3 >= to=3"),
    (
        lambda g: cd.zeros(2).random_(2.5, generator=g),
        TypeError,
        r"'to' \(position 2\) must be int, not float",
    ),
    (
        lambda g: cd.zeros(2).random_("a", 3, generator=g),
        TypeError,
        r"'from' \(position 2\) must be int, not str",
    ),
    (
        lambda g: cd.zeros(2, dtype=cd.complex64).random_(generator=g),
        NotImplementedError,
        "\"random\" not implemented for 'ComplexFloat': it takes real dtypes",
    ),
    (lambda g: cd.zeros(2).exponential_(0, generator=g), RuntimeError, "expects lambda > 0.0, but found lambda=0"),
    (
        lambda g: cd.zeros(2, dtype=cd.int8).exponential_(generator=g),
        RuntimeError,
        "Exponential distribution is a continuous",
    ),
    (lambda g: cd.zeros(2).geometric_(1, generator=g), RuntimeError, r"expects p to be in \(0, 1\), but got p=1"),
    (
        lambda g: cd.zeros(2, dtype=cd.bool).geometric_(0.5, generator=g),
        NotImplementedError,
        "\"geometric\" not implemented for 'Bool': it takes real numeric dtypes",
    ),
    (
        lambda g: cd.zeros(2, dtype=cd.complex64).log_normal_(generator=g),
        NotImplementedError,
        "\"log_normal\" not implemented for 'ComplexFloat': it takes real floating dtypes",
    ),
    (
        lambda g: cd.zeros(2).log_normal_(0, 0, generator=g),
        RuntimeError,
        "log_normal_ expects std > 0.0, but found std=0",
    ),
    (lambda g: cd.zeros(2).cauchy_(0, 0, generator=g), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"),
    (lambda g: cd.zeros(2, dtype=cd.int8).cauchy_(generator=g), RuntimeError, "Cauchy distribution is a continuous"),
    (
        lambda g: cd.zeros(2).bernoulli_(2, generator=g),
        RuntimeError,
        r"bernoulli_ expects p to be in \[0, 1\], but got p=2",
    ),
    (
        lambda g: cd.bernoulli(cd.zeros(2, dtype=cd.int64), generator=g),
        NotImplementedError,
        "\"bernoulli\" not implemented for 'Long': it takes real floating dtypes",
    ),
    (
        lambda g: cd.bernoulli(cd.zeros(2, dtype=cd.complex64), 0.5, generator=g),
        NotImplementedError,
        "\"bernoulli\" not implemented for 'ComplexFloat': it takes real dtypes",
    ),
    (
        lambda g: cd.zeros(2, dtype=cd.complex64).bernoulli_(generator=g),
        NotImplementedError,
        "\"bernoulli\" not implemented for 'ComplexFloat': it takes real dtypes",
    ),
    (
        lambda g: cd.zeros(2).bernoulli_(cd.ones(2, dtype=cd.int32), generator=g),
        NotImplementedError,
        "\"bernoulli\" not implemented for 'Int': it takes real floating dtypes",
    ),
    (
        lambda g: cd.multinomial(cd.ones(2), 3, generator=g),
        RuntimeError,
        r"n_sample > prob_dist.size\(-1\) samples without",
    ),
    (lambda g: cd.multinomial(cd.ones(2), 0, generator=g), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (lambda g: cd.multinomial(cd.ones(2, 2, 2), 1, generator=g), RuntimeError, "prob_dist must be 1 or 2 dim"),
    (
        lambda g: cd.multinomial(cd.ones(2, dtype=cd.int64), 1, generator=g),
        RuntimeError,
        "floating-point dtypes for input, got: Long",
    ),
    (lambda g: cd.rand(2, generator=3), TypeError, r"rand\(\): argument 'generator' must be Generator, not int"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=[text[:30] for _, _, text in BAD])
def test_bad_calls_draw_nothing(call: Any, error: type[Exception], text: str) -> None:
    """The error has PyTorch's text, and the generator's state does not change."""
    generator = fresh()
    with pytest.raises(error, match=text):
        call(generator)
    assert generator.get_offset() == 41


VALUES: list[tuple[Any, str]] = [
    (lambda: cd.bernoulli(cd.ones(2) * 2), "Expected p_in >= 0 && p_in <= 1 to be true, but got false"),
    (lambda: cd.multinomial(cd.ones(2) * -1, 1), "probability tensor contains either `inf`, `nan` or element < 0"),
    (lambda: cd.multinomial(cd.zeros(2), 1), r"invalid multinomial distribution \(sum of probabilities <= 0\)"),
    (lambda: cd.multinomial(cd.eye(2), 2), "not enough non-negative category to sample"),
    (lambda: cd.normal(0.0, cd.ones(2) * NAN), "normal expects all elements of std >= 0.0"),
]


@pytest.mark.parametrize(("call", "text"), VALUES, ids=[text[:30] for _, text in VALUES])
def test_bad_values(call: Any, text: str) -> None:
    """The kernel detects invalid weights and probabilities, and the errors are PyTorch's."""
    with pytest.raises(RuntimeError, match=text):
        call()
