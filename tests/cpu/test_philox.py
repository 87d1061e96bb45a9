"""The CPU's random numbers, compared with the published known answers, NumPy's generator and the distributions."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from candelabra._random.counters import counters_used
from candelabra_cpu import philox
from scipy import stats  # type: ignore[import-untyped]

from tests.cpu.philox_samples import BFLOAT16, COMPLEX, MASK, OFFSET, RARE, REAL, SEED, block, philox4x64, same_bits

# --- words ---------------------------------------------------------------------------------------------------------

PUBLISHED = [  # tests/kat_vectors of Random123, philox4x64 with 10 rounds: counter, key, output
    ("0 0 0 0", "0 0", "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    (
        "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff",
        "ffffffffffffffff ffffffffffffffff",
        "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
    ),
    (
        "243f6a8885a308d3 13198a2e03707344 a4093822299f31d0 082efa98ec4e6c89",
        "452821e638d01377 be5466cf34e90c6c",
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]


@pytest.mark.parametrize(("counter", "key", "output"), PUBLISHED)
def test_numpy_and_the_plain_block_give_the_published_answers(counter: str, key: str, output: str) -> None:
    """NumPy's output of Random123's vectors is one counter after its state, as the specification says."""
    c, k, expected = ([int(word, 16) for word in text.split()] for text in (counter, key, output))
    assert philox4x64(c, k) == expected
    before = (sum(word << 64 * i for i, word in enumerate(c)) - 1) % 2**256
    state = np.array([before >> 64 * i & MASK for i in range(4)], np.uint64)
    assert np.random.Philox(counter=state, key=np.array(k, np.uint64)).random_raw(4).tolist() == expected


@pytest.mark.parametrize("seed", [0, 1, SEED, 2**63, MASK])
@pytest.mark.parametrize("offset", [0, 1, OFFSET, 2**32 - 1, 2**63, MASK - 5])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 17])
def test_words_are_those_of_numpys_philox(seed: int, offset: int, n: int) -> None:
    """``words64`` equals ``random_raw`` of a Philox with that key and counter, and the block function's output."""
    words = philox.words64(seed, offset, n)
    assert words.dtype == np.uint64
    assert words.shape == (n,)
    assert words.tolist() == np.random.Philox(key=seed, counter=offset).random_raw(n).tolist() == block(seed, offset, n)


def test_low_halves_are_first() -> None:
    """A 64-bit word gives its low half, then its high half."""
    words, halves = philox.words64(SEED, OFFSET, 3).tolist(), philox.words32(SEED, OFFSET, 5)
    assert halves.dtype == np.uint32
    assert halves.tolist() == [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)][:5]


def test_the_last_counter_can_be_drawn() -> None:
    """At the offset 2**64 - 2 one counter, 2**64 - 1, remains."""
    assert philox.words64(3, MASK - 1, 4).tolist() == block(3, MASK - 1, 4)
    with pytest.raises(ValueError, match=r"drawing 5 words would pass the last counter, 2\*\*64 - 1; reseed"):
        philox.words64(3, MASK - 1, 5)


def test_threads_do_not_disturb_each_other() -> None:
    """Concurrent draws in several threads equal sequential ones."""

    def draw(seed: int) -> bytes:
        return b"".join(philox.normal(seed, i, 1000, np.float32).tobytes() for i in range(20))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(8))) == [draw(seed) for seed in range(8)]


# --- draws of several sizes ----------------------------------------------------------------------------------------


def draw(kind: str, dtype: np.dtype[Any], offset: int, n: int) -> npt.NDArray[Any]:
    """Draw ``n`` values of a kind after ``offset``."""
    if kind == "integers":
        return philox.integers(SEED, offset, -5, 100, n, dtype)
    if kind == "wide integers":
        return philox.integers(SEED, offset, -5, 2**40, n, dtype)
    if kind == "bernoulli":
        return philox.bernoulli(SEED, offset, np.full((), 0.3, dtype), n)
    result: npt.NDArray[Any] = getattr(philox, kind)(SEED, offset, n, dtype)
    return result


KINDS = [(kind, dtype) for kind in ("uniform", "normal") for dtype in REAL + COMPLEX]
KINDS += [(kind, dtype) for kind in ("exponential", "bernoulli") for dtype in REAL]
KINDS += [(kind, np.dtype("int64")) for kind in ("integers", "wide integers")]
IDS = [f"{kind}-{dtype}" for kind, dtype in KINDS]


def used(kind: str, dtype: np.dtype[Any], n: int) -> int:
    """Return the core's count for `draw`."""
    return counters_used(kind.removeprefix("wide "), n, dtype.name, 2**40 if kind.startswith("wide") else 1)


@pytest.mark.parametrize(("kind", "dtype"), KINDS, ids=IDS)
def test_split_draws_equal_one_draw(kind: str, dtype: np.dtype[Any]) -> None:
    """A draw of complete counters followed by another equals one draw, in small pieces and across the inner blocks."""
    for sizes in ([8, 16, 8, 5], [8 * 4099, 8, 8 * 2050, 3]):
        offset, parts = OFFSET, []
        for n in sizes:
            parts.append(draw(kind, dtype, offset, n))
            offset += used(kind, dtype, n)
        assert same_bits(np.concatenate(parts), draw(kind, dtype, OFFSET, sum(sizes)))


@pytest.mark.parametrize(("kind", "dtype"), KINDS, ids=IDS)
def test_fewer_values_are_the_first_of_more(kind: str, dtype: np.dtype[Any]) -> None:
    """A shorter draw is a prefix of a longer one, computed in plain Python or by NumPy, for even and odd sizes."""
    many = draw(kind, dtype, OFFSET, 1000)
    assert many.dtype == (np.bool_ if kind == "bernoulli" else dtype)
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 66, 67, 999]:
        assert same_bits(draw(kind, dtype, OFFSET, n), many[:n])


@pytest.mark.parametrize(("kind", "dtype"), KINDS, ids=IDS)
def test_the_last_counter_that_counts_is_the_last_that_is_read(kind: str, dtype: np.dtype[Any]) -> None:
    """A draw succeeds if exactly the core's count of counters remains, and fails with one fewer."""
    for n in (1, 9, 1001):
        count = used(kind, dtype, n)
        draw(kind, dtype, MASK - count, n)
        with pytest.raises(ValueError, match="would pass the last counter"):
            draw(kind, dtype, MASK - count + 1, n)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (2, 3, 7), 6])
def test_shapes(shape: int | tuple[int, ...]) -> None:
    """Every kind gives arrays of the requested shape, also 0-d and empty ones, in row-major order."""
    full = (shape,) if isinstance(shape, int) else shape
    n = math.prod(full)
    for dtype in REAL + COMPLEX:
        for function in (philox.uniform, philox.normal):
            assert same_bits(function(1, 2, shape, dtype), function(1, 2, n, dtype).reshape(full))
    assert same_bits(philox.exponential(1, 2, shape, np.float32), philox.exponential(1, 2, n, np.float32).reshape(full))
    assert same_bits(philox.bernoulli(1, 2, 0.5, shape), philox.bernoulli(1, 2, 0.5, n).reshape(full))
    assert same_bits(philox.integers(1, 2, 0, 9, shape), philox.integers(1, 2, 0, 9, n).reshape(full))


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_small_draws_in_sequence_are_the_numbers_of_their_place(dtype: np.dtype[Any]) -> None:
    """Draws that follow another, repeat it, or follow one of a part of a counter or of another kind are correct."""
    offset = 7
    for n in [8, 16, 7, 8, 3, 4, 8, 9, 8, 0, 8] * 3:
        many = philox.uniform(SEED, offset, 64, dtype)
        for seed in (SEED, SEED, SEED + 1, SEED):
            value = philox.uniform(seed, offset, n, dtype)
            assert same_bits(value, many[:n]) or seed != SEED
        offset += used("uniform", dtype, n)
        if n == 4:
            philox.words64(SEED, offset, 3)


# --- uniform and bernoulli -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 6, 10_001])
def test_uniform_is_numpys(n: int) -> None:
    """float32 and float64 have the bits of ``numpy.random.Generator.random`` over the same Philox."""
    for dtype in (np.float32, np.float64):
        source = np.random.Generator(np.random.Philox(key=SEED, counter=OFFSET))
        assert same_bits(philox.uniform(SEED, OFFSET, n, dtype), source.random(n, dtype=dtype))


@pytest.mark.parametrize(("dtype", "bits"), list(zip(REAL, [11, 8, 24, 53], strict=True)), ids=str)
def test_uniform_is_the_leading_bits_of_its_word(dtype: np.dtype[Any], bits: int) -> None:
    """A uniform number is exactly the word's leading bits as a binary fraction."""
    wide = dtype == np.float64
    words = (philox.words64 if wide else philox.words32)(SEED, OFFSET, 1001).tolist()
    expected = [(word >> (64 if wide else 32) - bits) * 2.0**-bits for word in words]
    assert philox.uniform(SEED, OFFSET, 1001, dtype).astype(np.float64).tolist() == expected


@pytest.mark.parametrize(("dtype", "bits"), list(zip(REAL, [11, 8, 24, 53], strict=True)), ids=str)
def test_uniform_is_never_one(dtype: np.dtype[Any], bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest word gives 1 - 2**-bits, below 1 in every dtype; for half types this is also drawn."""
    value = philox.uniform(SEED, OFFSET, 200_000, dtype).astype(np.float64)
    assert value.min() >= 0
    assert value.max() < 1
    if bits <= 11:
        assert value.min() == 0
        assert value.max() == 1 - 2.0**-bits
        monkeypatch.setattr(philox, "words32", lambda seed, offset, n: np.full(n, 2**32 - 1, np.uint32))
        assert float(philox.uniform(0, 0, (), dtype)) == 1 - 2.0**-bits


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_uniform_is_pairs_of_real_ones(dtype: np.dtype[Any]) -> None:
    """Real and imaginary parts alternate in a real draw of twice the size."""
    value, part = philox.uniform(SEED, OFFSET, 9, dtype), "f4" if dtype.itemsize == 8 else "f8"
    assert same_bits(value.view(part), philox.uniform(SEED, OFFSET, 18, part))


def test_bernoulli_compares_a_uniform_number_with_p() -> None:
    """float64 probabilities are compared with 53 bits, others with 32; 0 and NaN are never True, 1 is always True."""
    n, word = 2000, philox.words32(SEED, OFFSET, 2000).astype(np.float64) * 2.0**-32
    p = np.linspace(0, 1, n)
    assert (philox.bernoulli(SEED, OFFSET, p, n) == (philox.uniform(SEED, OFFSET, n, np.float64) < p)).all()
    for dtype in REAL[:3]:
        q = p.astype(dtype)
        assert (philox.bernoulli(SEED, OFFSET, q, n) == (word < q.astype(np.float64))).all()
    assert (philox.bernoulli(SEED, OFFSET, 0.3, n) == (word < 0.3)).all()
    for p_scalar, expected in ((0.0, 0), (1.0, n), (math.nan, 0)):
        assert philox.bernoulli(SEED, OFFSET, p_scalar, n).sum() == expected


def test_bernoulli_broadcasts_p() -> None:
    """A probability per column applies to all rows."""
    p = np.array([0.0, 0.5, 1.0])
    value = philox.bernoulli(SEED, OFFSET, p, (4000, 3))
    assert value.shape == (4000, 3)
    assert value.dtype == np.bool_
    assert value[:, 0].sum() == 0
    assert value[:, 2].sum() == 4000
    assert stats.binomtest(int(value[:, 1].sum()), 4000, 0.5).pvalue > RARE


# --- integers ------------------------------------------------------------------------------------------------------

RANGES = [(0, 1), (0, 10), (-7, 13), (0, 2**32), (-5, 2**32 - 5), (0, 2**32 + 1), (-(2**40), 2**41 + 3)]
RANGES += [(0, 2**63 - 1), (-(2**63), 2**63 - 1), (-(2**63), 2**63)]


@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("n", [5, 10_001])
def test_integers_are_the_high_part_of_a_product(low: int, high: int, n: int) -> None:
    """A value is the high part of word times range, with one word for ranges of up to 2**32 values, otherwise two."""
    span = high - low
    if span <= 2**32:
        expected = [low + (word * span >> 64) for word in philox.words64(SEED, OFFSET, n).tolist()]
    else:
        words = philox.words64(SEED, OFFSET, 2 * n).tolist()
        expected = [low + ((words[2 * i] << 64 | words[2 * i + 1]) * span >> 128) for i in range(n)]
    value = philox.integers(SEED, OFFSET, low, high, n)
    assert value.dtype == np.int64
    assert value.tolist() == expected
    assert low <= value.min()
    assert value.max() < high


def test_wide_products_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 128-bit product is exact if its partial sums overflow: words and ranges with all bits set, and near them."""
    edge = [0, 1, 2**32 - 1, 2**32, 2**63, MASK - 1, MASK]
    words = np.array([word for a in edge for b in edge for word in (a, b)], np.uint64)
    monkeypatch.setattr(philox, "words64", lambda seed, offset, n: words[:n])
    n = len(words) // 2
    for span in (2**32 + 1, 2**33 - 1, 2**63 + 1, MASK - 1, MASK, 2**64):
        numbers = words.tolist()
        expected = [(numbers[2 * i] << 64 | numbers[2 * i + 1]) * span >> 128 for i in range(n)]
        assert philox.integers(0, 0, 0, span, n, np.uint64).tolist() == expected


@pytest.mark.parametrize("n", [9, 500])
def test_integers_fill_every_integer_dtype(n: int) -> None:
    """The same range gives the same numbers in every dtype that holds it, and each dtype's whole range can be drawn."""
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        assert philox.integers(4, 2, 3, 100, n, name).tolist() == philox.integers(4, 2, 3, 100, n).tolist()
        limits = np.iinfo(name)
        value = philox.integers(4, 2, int(limits.min), int(limits.max) + 1, n, name)
        assert value.dtype == name
        assert float(value.max()) - float(value.min()) > 0.4 * (float(limits.max) - float(limits.min))
    assert philox.integers(4, 2, 0, 2, n, np.bool_).tolist() == philox.integers(4, 2, 0, 2, n).astype(bool).tolist()


@pytest.mark.parametrize("high", [2, 10, 1000])
def test_integers_are_uniform(high: int) -> None:
    """Chi-square of 200,000 integers over the whole range."""
    counts = np.bincount(philox.integers(11, 0, 0, high, 200_000), minlength=high)
    assert stats.chisquare(counts).pvalue > RARE


def test_wide_integers_are_uniform() -> None:
    """Kolmogorov–Smirnov of a range above 2**32 that is not a power of two, where a plain high part would be biased."""
    span = 3 * 2**62
    value = philox.integers(11, 0, 0, span, 200_000, np.uint64).astype(np.float64) / span
    assert stats.kstest(value, "uniform").pvalue > RARE
    assert abs(np.mean(philox.integers(11, 0, 0, span, 200_000, np.uint64) % np.uint64(3)) - 1) < 0.01


# --- the specification's own examples ------------------------------------------------------------------------------


def hexadecimals(values: npt.NDArray[Any]) -> list[str]:
    """Format real numbers as C99 hexadecimal, without trailing zeros of the fraction."""
    mantissas = (float(value).hex().split("p") for value in values)
    return [f"{digits.rstrip('0')}p{exponent}" for digits, exponent in mantissas]


def test_the_specifications_known_answers() -> None:
    """The table at the end of the specification, as printed there: seed 20240229, offset 41."""
    assert [f"{word:016x}" for word in philox.words64(SEED, OFFSET, 4).tolist()] == [
        "c552eb5766ecf9b9", "f8d2874a5c5227fe", "f89f6c5b5f0db52e", "d49c76ebe4673786"
    ]  # fmt: skip
    assert hexadecimals(philox.uniform(SEED, OFFSET, 2, "f8")) == ["0x1.8aa5d6aecdd9fp-1", "0x1.f1a50e94b8a44p-1"]
    assert hexadecimals(philox.uniform(SEED, OFFSET, 2, "f4")) == ["0x1.9bb3e4p-2", "0x1.8aa5d6p-1"]
    assert hexadecimals(philox.uniform(SEED, OFFSET, 2, "f2")) == ["0x1.9b8p-2", "0x1.8a8p-1"]
    assert hexadecimals(philox.uniform(SEED, OFFSET, 2, BFLOAT16)) == ["0x1.98p-2", "0x1.8ap-1"]
    assert hexadecimals(philox.normal(SEED, OFFSET, 2, "f8")) == ["0x1.6bb9b56aa4a65p-1", "-0x1.02fcef7d5343ep-3"]
    assert hexadecimals(philox.normal(SEED, OFFSET, 2, "f4")) == ["0x1.683a86p-3", "-0x1.56a386p+0"]
    assert hexadecimals(philox.normal(SEED, OFFSET, 1, "c16").view("f8")) == [
        "0x1.013155b65c4b3p-1",
        "-0x1.6e43aea40caap-4",
    ]
    assert hexadecimals(philox.exponential(SEED, OFFSET, 2, "f8")) == ["0x1.0a942dff19a5bp-2", "0x1.d1ee3d6a5ca9p-6"]
    assert hexadecimals(philox.exponential(SEED, OFFSET, 2, "f4")) == ["0x1.d284e8p-1", "0x1.0a942ep-2"]
    assert philox.integers(SEED, OFFSET, 0, 10, 4).tolist() == [7, 9, 9, 8]
    assert philox.integers(SEED, OFFSET, 0, 10**12, 2).tolist() == [770796498144, 971182606036]
    assert philox.bernoulli(SEED, OFFSET, 0.5, 8).tolist() == [bool(bit) for bit in (1, 0, 1, 0, 1, 0, 0, 0)]
    assert philox.permutation(SEED, OFFSET, 8).tolist() == [7, 5, 6, 0, 3, 4, 2, 1]
    weights = np.array([1.0, 0.0, 2.5, 0.5])
    assert philox.multinomial(SEED, OFFSET, weights, 8, True).tolist() == [2, 3, 3, 2, 2, 2, 2, 0]
    assert philox.multinomial(SEED, OFFSET, weights, 3, False).tolist() == [2, 0, 3]


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    """Seeds are unsigned 64-bit numbers here; the core converts negative ones."""
    with pytest.raises(ValueError, match=rf"seed: expected 0 <= seed < 2\*\*64, got {seed}"):
        philox.uniform(seed, 0, 3, np.float32)


@pytest.mark.parametrize("offset", [-1, 2**64 - 1, 2**70])
def test_an_offset_out_of_range_is_refused(offset: int) -> None:
    """No counter is used twice, and none beyond the last."""
    with pytest.raises(ValueError, match=rf"offset {offset}: drawing 3 words would pass the last counter"):
        philox.words64(0, offset, 3)


@pytest.mark.parametrize("shape", [-1, (2, -3), (-2, -2)])
def test_a_negative_size_is_refused(shape: int | tuple[int, ...]) -> None:
    """Two negative sizes do not give a positive one."""
    for function in (philox.uniform, philox.normal, philox.exponential):
        with pytest.raises(ValueError, match=r"shape: expected sizes >= 0, got"):
            function(0, 0, shape, np.float64)


@pytest.mark.parametrize(
    ("kind", "dtype", "allowed"),
    [
        ("uniform", "int32", "float16, bfloat16, float32, float64, complex64, complex128"),
        ("normal", "bool", "float16, bfloat16, float32, float64, complex64, complex128"),
        ("exponential", "complex64", "float16, bfloat16, float32, float64$"),
    ],
)
def test_an_unsupported_dtype_is_refused(kind: str, dtype: str, allowed: str) -> None:
    """The error names the kind, the dtype and the supported dtypes."""
    with pytest.raises(ValueError, match=rf"{kind}: dtype {dtype} is not supported; expected one of {allowed}"):
        getattr(philox, kind)(0, 0, 3, dtype)


def test_bernoulli_refuses_integers_as_probabilities() -> None:
    """A probability must be a floating-point number."""
    with pytest.raises(ValueError, match="bernoulli: dtype int64 is not supported; expected one of float16, bfloat16"):
        philox.bernoulli(0, 0, np.array([0, 1]), 2)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "message"),
    [
        (0, 3, "float32", "integers: expected an integer dtype or bool, got float32"),
        (3, 3, "int64", "integers: expected low < high, got low=3, high=3"),
        (0, 257, "uint8", "integers: uint8 holds 0 to 255, got low=0, high=257"),
        (-129, 3, "int8", "integers: int8 holds -128 to 127, got low=-129, high=3"),
        (0, 3, "bool", "integers: bool holds 0 to 1, got low=0, high=3"),
        (-1, 3, "uint64", "integers: uint64 holds 0 to 18446744073709551615, got low=-1, high=3"),
    ],
)
def test_impossible_ranges_are_refused(low: int, high: int, dtype: str, message: str) -> None:
    """Empty ranges, and ranges that the dtype cannot hold, are errors."""
    with pytest.raises(ValueError, match=message):
        philox.integers(0, 0, low, high, 3, dtype)


@pytest.mark.parametrize(
    ("weights", "samples", "replacement", "message"),
    [
        (np.ones((2, 2, 2)), 1, True, r"got shape \(2, 2, 2\) and num_samples=1"),
        (np.ones(0), 1, True, r"weights of shape \(n,\) or \(rows, n\) with n >= 1"),
        (np.ones(3), 0, True, r"got shape \(3,\) and num_samples=0"),
        (np.array([1.0, -1.0]), 1, True, "expected finite weights >= 0, got one that is negative, infinite or NaN"),
        (np.array([1.0, np.inf]), 1, True, "expected finite weights >= 0"),
        (np.array([1.0, np.nan]), 1, False, "expected finite weights >= 0"),
        (np.array([[1.0, 0], [0, 0]]), 1, True, "expected a positive weight in each row, got a row of zeros"),
        (np.array([1.0, 0, 2]), 3, False, "expected at least num_samples=3 positive weights in each row"),
    ],
)
def test_impossible_weights_are_refused(
    weights: npt.NDArray[Any], samples: int, replacement: bool, message: str
) -> None:
    """Each reason has its own text."""
    with pytest.raises(ValueError, match=message):
        philox.multinomial(0, 0, weights, samples, replacement)


def test_two_threads_may_draw_first_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that another thread has stored meanwhile is not taken for one that is positioned already."""
    streams = [philox._Stream(), philox._Stream()]
    calls = iter([streams[0]])
    monkeypatch.setattr(philox, "_stream", lambda: next(calls, streams[1]))  # of @cache, the last to return stays
    first, second = philox.uniform(5, 0, 8, "float32"), philox.uniform(5, 1, 8, "float32")
    monkeypatch.undo()
    both = philox.uniform(5, 0, 16, "float32")
    assert first.tolist() == both[:8].tolist()
    assert second.tolist() == both[8:].tolist()
