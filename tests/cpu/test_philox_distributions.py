"""Normal and exponential numbers of the CPU: accuracy and distribution."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from candelabra_cpu import box_muller, philox
from scipy import stats  # type: ignore[import-untyped]

from tests.cpu.philox_samples import (
    COMPLEX,
    MASK,
    OFFSET,
    RARE,
    REAL,
    SEED,
    plain_cos_sin,
    plain_negative_log,
    same_bits,
)

# --- normal and exponential ----------------------------------------------------------------------------------------


needs_long_double = pytest.mark.skipif(
    bool(np.finfo(np.longdouble).eps > 2.0**-60), reason="this platform's long double is no wider than float64"
)


def spacing(value: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return one unit in the last place of ``dtype`` at each value."""
    return np.asarray(np.spacing(np.abs(value).astype(dtype)).astype(value.dtype))


# Word of the radius, word of the angle; sqrt(-2 ln u) times cosine and sine, evaluated to 50 digits and rounded.
EXACT = [
    (0x0000000000000000, 0x0000000000000000, "0x1.124b2800eda48p+3", "0x0.0p+0"),
    (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, "0x1.0000000000000p-26", "-0x1.921fb54442d18p-77"),
    (0x0000000000000000, 0x2000000000000000, "0x1.83e8e2149f688p+2", "0x1.83e8e2149f688p+2"),
    (0xFFFFFFFFFFFFFFFF, 0x4000000000000000, "0x0.0p+0", "0x1.0000000000000p-26"),
    (0x8000000000000000, 0x8000000000000800, "-0x1.2d6abe44afc42p+0", "-0x1.d976f421bde0ap-51"),
    (0x5A827999FCEF3242, 0x5FFFFFFFFFFFF800, "-0x1.0508e55795f60p+0", "0x1.0508e55795f66p+0"),
    (0x0123456789ABCDEF, 0xFEDCBA9876543210, "0x1.a51d018acbad5p+1", "-0x1.786886fd83798p-4"),
    (0xC552EB5766ECF9B9, 0xF8D2874A5C5227FE, "0x1.6bb9b56aa4a65p-1", "-0x1.02fcef7d5343ep-3"),
    (0xF89F6C5B5F0DB52E, 0xD49C76EBE4673786, "0x1.dffc5a319b7acp-4", "-0x1.b13c38134c02dp-3"),
    (0x0000010000000000, 0xE000000000000000, "0x1.0508e55757323p+2", "-0x1.0508e55757323p+2"),
]


@pytest.mark.parametrize(("radius", "angle", "cosine", "sine"), EXACT)
def test_normals_of_chosen_words(radius: int, angle: int, cosine: str, sine: str) -> None:
    """Smallest and largest words, quadrant borders and others: float64 is within 3 ULP of the exact value."""
    length = math.sqrt(2 * plain_negative_log(radius >> 12, 52))
    for part, text in zip(plain_cos_sin(angle & ~2047), (cosine, sine), strict=True):
        expected = float.fromhex(text)
        assert abs(length * part - expected) <= 3 * math.ulp(expected)


@needs_long_double
@pytest.mark.parametrize(("dtype", "bits", "tolerance"), [("float32", 32, 1), ("float64", 52, 3)])
def test_normals_are_accurate(dtype: str, bits: int, tolerance: float) -> None:
    """Compared with long double, float32 is within 1 ULP (it is rounded once, from float64), float64 within 3."""
    n, wide = 100_000, dtype == "float64"
    words = philox.words64(SEED, OFFSET, 2 * n if wide else n)
    h, a = (words[0::2] >> 12, words[1::2] >> 11) if wide else (words & 0xFFFFFFFF, (words >> 32) << 21)
    length = np.sqrt(-2 * np.log((h.astype(np.longdouble) + np.longdouble(0.5)) * np.longdouble(2) ** -bits))
    # The angle is reduced to an eighth of a turn in exact integers, where long double's sine and cosine are accurate.
    quarter = (a + (1 << 50)) >> 51
    rest = (a.astype(np.int64) - (quarter << 51).astype(np.int64)).astype(np.longdouble) * np.longdouble(2) ** -51
    half_pi = np.longdouble("1.57079632679489661923132169163975144")
    c, s = np.cos(half_pi * rest), np.sin(half_pi * rest)
    q = (quarter & 3).astype(np.int64)
    reference = length * np.choose(q, [c, -s, -c, s]), length * np.choose(q, [s, c, -s, -c])
    value = philox.normal(SEED, OFFSET, 2 * n, dtype).astype(np.longdouble)
    for got, want in zip((value[0::2], value[1::2]), reference, strict=True):
        assert (np.abs(got - want) <= tolerance * spacing(want, dtype)).all()


@needs_long_double
def test_exponentials_are_accurate() -> None:
    """Compared with long double, both dtypes are within 1 ULP."""
    n = 100_000
    for dtype, h, bits in (
        ("float64", philox.words64(SEED, OFFSET, n) >> np.uint64(12), 52),
        ("float32", philox.words32(SEED, OFFSET, n), 32),
    ):
        want = -np.log((h.astype(np.longdouble) + np.longdouble(0.5)) * np.longdouble(2) ** -bits)
        got = philox.exponential(SEED, OFFSET, n, dtype)
        assert (np.abs(got.astype(np.longdouble) - want) <= spacing(want, dtype)).all()


def test_arrays_and_plain_python_agree_in_every_bit() -> None:
    """NumPy's arrays and plain Python execute the same operations, at the ends of the range and inside it."""
    words = np.concatenate([np.arange(2000, dtype=np.uint64), philox.words64(1, 0, 4000)])
    words = np.concatenate([words, ~words])
    h, angle = words >> np.uint64(12), words & np.uint64(MASK - 2047)
    logs = np.array([plain_negative_log(x, 52) for x in h.tolist()])
    assert same_bits(box_muller.negative_log(h, 52), logs)
    pairs = np.array([plain_cos_sin(x) for x in angle.tolist()])
    cosine, sine = box_muller.cos_sin(angle)
    assert same_bits(cosine, pairs[:, 0].copy())
    assert same_bits(sine, pairs[:, 1].copy())


def test_whole_and_half_turns_are_exact() -> None:
    """At quarter turns cosine and sine are exactly 0, 1 or -1; at eighths their magnitudes agree."""
    quarters = [plain_cos_sin(k << 62) for k in range(4)]
    assert quarters == [(1, 0), (0, 1), (-1, 0), (0, -1)]
    for k in (1, 3, 5, 7):
        cosine, sine = plain_cos_sin(k << 61)
        assert abs(abs(cosine) - math.sqrt(0.5)) <= math.ulp(0.5)
        assert abs(abs(sine) - math.sqrt(0.5)) <= math.ulp(0.5)


@pytest.mark.parametrize("word", [0, MASK])
def test_the_extreme_words_give_finite_numbers(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words with all bits 0 or 1 give finite normal numbers, and positive exponential ones without underflow."""
    monkeypatch.setattr(philox, "words64", lambda seed, offset, n: np.full(n, word, np.uint64))
    for n in (6, 1000):
        for dtype in REAL + COMPLEX:
            assert np.isfinite(philox.normal(0, 0, n, dtype)).all()
        for dtype in REAL:
            value = philox.exponential(0, 0, n, dtype).astype(np.float64)
            assert np.isfinite(value).all()
            assert (value > 0 if dtype != np.float16 else value >= 0).all()
    longest = np.abs(philox.normal(0, 0, 2, np.float64)).max()
    assert longest < math.sqrt(2 * 53 * math.log(2)) * (1 + 1e-15)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_narrow_dtypes_are_rounded_from_float32(dtype: np.dtype[Any]) -> None:
    """float16 and bfloat16 are the float32 numbers at the same position, rounded to nearest even."""
    for function in (philox.normal, philox.exponential):
        wide = function(SEED, OFFSET, 3001, np.float64 if dtype == np.float64 else np.float32)
        assert same_bits(function(SEED, OFFSET, 3001, dtype), wide.astype(dtype))


@pytest.mark.parametrize("dtype", REAL[2:], ids=str)
def test_normals_are_normal(dtype: np.dtype[Any]) -> None:
    """Kolmogorov–Smirnov and moments of 400,000, and no correlation between the two numbers of a pair."""
    value = philox.normal(5, 0, 400_000, dtype).astype(np.float64)
    assert stats.kstest(value, "norm").pvalue > RARE
    assert stats.kstest(value[0::2] ** 2 + value[1::2] ** 2, "chi2", args=(2,)).pvalue > RARE
    assert abs(np.corrcoef(value[0::2], value[1::2])[0, 1]) < 0.01
    assert abs(stats.kurtosis(value)) < 0.03
    assert abs(stats.skew(value)) < 0.015


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_normals_have_variance_one(dtype: np.dtype[Any]) -> None:
    """Each part is normal with variance 1/2, and the two are uncorrelated."""
    value = philox.normal(5, 0, 200_000, dtype)
    for part in (value.real, value.imag):
        assert stats.kstest(part.astype(np.float64) * math.sqrt(2), "norm").pvalue > RARE
    assert abs(np.mean(value.real * value.imag)) < 0.005


@pytest.mark.parametrize("dtype", REAL[2:], ids=str)
def test_exponentials_are_exponential(dtype: np.dtype[Any]) -> None:
    """Kolmogorov–Smirnov of 400,000."""
    assert stats.kstest(philox.exponential(5, 0, 400_000, dtype).astype(np.float64), "expon").pvalue > RARE


@pytest.mark.parametrize("dtype", REAL[2:], ids=str)
def test_uniforms_are_uniform(dtype: np.dtype[Any]) -> None:
    """Kolmogorov–Smirnov of 400,000, and of the sums of adjacent numbers."""
    value = philox.uniform(5, 0, 400_000, dtype).astype(np.float64)
    assert stats.kstest(value, "uniform").pvalue > RARE
    assert stats.kstest((value[0::2] + value[1::2]) / 2, stats.triang(0.5).cdf).pvalue > RARE
