"""The number of counters that a draw consumes, compared with NumPy's Philox."""

import numpy as np
import pytest
from candelabra._random.counters import COUNTER_BITS, bits_per_value, counters_used

SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 1000, 1001]


def generator() -> np.random.Generator:
    """Return a NumPy generator whose counter is 0, so that its state counts the consumed counters."""
    return np.random.Generator(np.random.Philox(key=1, counter=0))


def consumed(source: np.random.Generator) -> int:
    """Return the number of counters that a generator has consumed, wholly or in part."""
    return int(source.bit_generator.state["state"]["counter"][0])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_consumes_as_many_counters_as_numpy(n: int, dtype: str) -> None:
    """Uniform numbers consume as many counters as ``Generator.random``."""
    source = generator()
    source.random(n, dtype=np.dtype(dtype).type)
    assert counters_used("uniform", n, dtype) == consumed(source)


@pytest.mark.parametrize("n", SIZES)
def test_words_consume_as_many_counters_as_numpy(n: int) -> None:
    """Kinds of 64 bits per value consume the counters of ``random_raw(n)``, those of 128 of ``random_raw(2 * n)``."""
    for values, kinds in (
        (n, [("permutation", "int64", 1), ("integers", "int8", 100)]),
        (2 * n, [("integers", "", 2**40)]),
    ):
        source = generator()
        source.bit_generator.random_raw(values)
        for kind, dtype, span in kinds:
            assert counters_used(kind, n, dtype, span) == consumed(source)


@pytest.mark.parametrize(
    ("kind", "dtype", "span", "bits"),
    [
        ("uniform", "float16", 1, 32),
        ("uniform", "bfloat16", 1, 32),
        ("uniform", "complex64", 1, 64),
        ("uniform", "complex128", 1, 128),
        ("normal", "float16", 1, 32),
        ("normal", "bfloat16", 1, 32),
        ("normal", "float32", 1, 32),
        ("normal", "float64", 1, 64),
        ("normal", "complex64", 1, 64),
        ("normal", "complex128", 1, 128),
        ("exponential", "float32", 1, 32),
        ("exponential", "float64", 1, 64),
        ("bernoulli", "float32", 1, 32),
        ("bernoulli", "float64", 1, 64),
        ("integers", "int64", 1, 64),
        ("integers", "int64", 2**32, 64),
        ("integers", "int64", 2**32 + 1, 128),
        ("integers", "uint64", 2**64, 128),
        ("permutation", "int32", 1, 64),
        ("multinomial", "int64", 1, 64),
    ],
)
def test_bits_per_value(kind: str, dtype: str, span: int, bits: int) -> None:
    """The values are those of the table in section 3 of the specification, and the counts follow from them."""
    assert bits_per_value(kind, dtype, span) == bits
    k = COUNTER_BITS // bits
    assert [counters_used(kind, n, dtype, span) for n in (0, 1, k, k + 1)] == [0, 1, 1, 2]


def test_a_count_beyond_64_bits_is_exact() -> None:
    """The count is a Python integer and does not overflow."""
    assert counters_used("uniform", 2**70 + 1, "float64") == 2**68 + 1


def test_an_undefined_kind_is_named() -> None:
    """The error lists the defined kinds."""
    match = r"random kind 'pigeons' is not defined; expected one of bernoulli, binomial, exponential, gamma, integers"
    with pytest.raises(ValueError, match=match):
        counters_used("pigeons", 1, "float32")


def test_an_unsupported_dtype_is_named() -> None:
    """The error lists the dtypes that the kind supports."""
    match = "exponential: dtype complex64 is not supported; expected one of float16, bfloat16, float32, float64"
    with pytest.raises(ValueError, match=match):
        counters_used("exponential", 1, "complex64")


@pytest.mark.parametrize("span", [0, -3, 2**64 + 1])
def test_an_impossible_span_is_refused(span: int) -> None:
    """The range of integers must have 1 to 2**64 values."""
    with pytest.raises(ValueError, match=rf"integers: expected 1 <= high - low <= 2\*\*64, got {span}"):
        counters_used("integers", 1, "int64", span)


def test_a_negative_count_is_refused() -> None:
    """A draw of -1 values is an error."""
    with pytest.raises(ValueError, match="uniform: expected n >= 0, got -1"):
        counters_used("uniform", -1, "float32")
