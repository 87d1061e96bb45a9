"""The C functions compared with NumPy's and SciPy's, within the bounds of the conformance suite, including extremes.

All functions of one dtype are in one kernel here, since a device needs longer to compile than to compute.
"""

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.special as special
from candelabra.dtypes import dtype
from candelabra_clike import Engine, Source
from candelabra_clike.kernels.pointwise import POINTWISE
from candelabra_clike.language import text
from candelabra_clike.source import number, reads, writes
from candelabra_clike.types import CTYPES

pytestmark = pytest.mark.rounding

Array = np.ndarray[Any, Any]
Function = Callable[[Array], Array]
LONG = np.longdouble

ELEMENTARY: dict[str, Function] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sqrt": np.sqrt, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
SPECIAL: dict[str, Function] = {
    "erf": special.erf, "erfc": special.erfc, "special_erfcx": special.erfcx, "erfinv": special.erfinv,
    "special_ndtr": special.ndtr, "special_log_ndtr": special.log_ndtr, "special_ndtri": special.ndtri,
    "lgamma": special.gammaln, "digamma": special.psi, "i0": special.i0, "special_i0e": special.i0e,
    "special_i1": special.i1, "special_i1e": special.i1e, "special_bessel_j0": special.j0,
    "special_bessel_j1": special.j1, "special_bessel_y0": special.y0, "special_bessel_y1": special.y1,
    "special_modified_bessel_k0": special.k0, "special_modified_bessel_k1": special.k1,
    "special_scaled_modified_bessel_k0": special.k0e, "special_scaled_modified_bessel_k1": special.k1e,
}  # fmt: skip
COMPLEX: dict[str, Function] = {
    name: function for name, function in ELEMENTARY.items() if name not in ("exp2", "log2", "log10", "expm1", "log1p")
}


def points(t: Any, size: int = 3000) -> Array:
    """Return numbers of every magnitude and both signs, near 0, near 1, and near multiples of pi / 4."""
    draw = np.random.default_rng(5)
    bits = draw.integers(0, np.iinfo(f"u{t().itemsize}").max, size, f"u{t().itemsize}").view(t)
    turns = (np.arange(1, 400) * (np.pi / 4)).astype(t)
    parts = (bits, draw.uniform(-1, 1, size), draw.normal(0, 10, size), draw.uniform(-1e6, 1e6, size), turns, -turns)
    return np.concatenate([part.astype(t) for part in parts])


def evaluate(engine: Engine, d: dtype, names: list[str], x: Array) -> dict[str, Array]:
    """Compute each function of ``x`` by one kernel."""
    memory = CTYPES[d].memory
    lines = [f"const {memory} va = in[GLOBAL_ID];"]
    for row, name in enumerate(names):
        value = POINTWISE[name].value(d)
        assert value is not None
        lines.append(f"out[{row} * count + GLOBAL_ID] = {text(value)};")
    parameters = (writes("out", memory), reads("in", memory), number("count"))
    launch = engine.compile(Source(f"all_{d.name}", parameters, "\n".join(lines), contract=True))
    given, out = engine.allocate(x.nbytes), engine.allocate(x.nbytes * len(names))
    engine.write(given, 0, memoryview(x.tobytes()))
    launch(len(x), out, given, len(x))
    rows = np.frombuffer(engine.read(out, 0, x.nbytes * len(names)), x.dtype).reshape(len(names), len(x))
    return dict(zip(names, rows, strict=True))


def ratio(got: Array, function: Function, x: Array) -> Array:
    """Return the error relative to the suite's bound: 8 times the rounding of the result and of the argument."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(LONG if function in ELEMENTARY.values() else np.float64)
        want = function(wide)
        spread = np.maximum(*(np.abs(function(wide * (1 + s * limits.eps)) - want) for s in (1, -1)))
        allowed = 8 * (limits.eps * np.abs(want) + np.nan_to_num(spread)) + 8 * limits.smallest_subnormal
        same = (got == want.astype(got.dtype)) | (np.isnan(got) & np.isnan(want))
        error = np.where(same, 0, np.abs(got - want) / allowed)
    return np.asarray(np.where(np.isnan(error), np.inf, error))


@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
def test_elementary_functions_are_exact_to_a_few_digits_of_the_last_place(engine: Engine, d: dtype) -> None:
    """This includes subnormals, the ends of the range, and arguments of a million turns; NaN outside the domain."""
    x = points(np.float32 if d is cd.float32 else np.float64)
    ends = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(x.dtype).max, np.finfo(x.dtype).tiny]
    x = np.concatenate([x, np.array(ends, x.dtype)])
    for name, got in evaluate(engine, d, list(ELEMENTARY), x).items():
        errors = ratio(got, ELEMENTARY[name], x)
        find_out_of_bounds = int(np.argmax(errors))
        assert errors[find_out_of_bounds] <= 1, (name, x[find_out_of_bounds], got[find_out_of_bounds])


def test_special_functions_are_exact_to_a_few_digits_of_the_last_place(engine: Engine) -> None:
    """SciPy's float64 is exact compared with float32."""
    x = points(np.float32)
    x = x[(np.abs(x) < 80) & (np.abs(x) > 1e-30)]
    for name, got in evaluate(engine, cd.float32, list(SPECIAL), x).items():
        errors = ratio(got, SPECIAL[name], x)
        find_out_of_bounds = int(np.argmax(errors))
        assert errors[find_out_of_bounds] <= 1, (name, x[find_out_of_bounds], got[find_out_of_bounds])


def test_special_functions_of_float64_agree_with_known_values(engine: Engine) -> None:
    """The values are computed to 40 digits by the definitions in the NIST Digital Library of Mathematical Functions."""
    known = {
        "lgamma": (-2.5, -0.05624371649767405067), "digamma": (0.25, -4.2274535333762654081),
        "erfinv": (0.5, 0.47693627620446987338), "special_ndtri": (1e-20, -9.2623400897984075796),
        "i0": (10.0, 2815.7166284662544715), "special_i1": (1.0, 0.56515910399248502721),
        "special_modified_bessel_k0": (2.0, 0.11389387274953343565),
        "special_modified_bessel_k1": (0.5, 1.6564411200033008937),
        "special_bessel_j0": (10.0, -0.24593576445134833520), "special_bessel_y1": (3.0, 0.32467442479179997144),
    }  # fmt: skip
    for name, (x, want) in known.items():
        got = evaluate(engine, cd.float64, [name], np.array([x]))[name][0]
        assert abs(got - want) <= 8 * np.finfo(np.float64).eps * abs(want), name


def test_functions_of_complex_numbers(engine: Engine) -> None:
    """The modulus of the error is compared, as each part may cancel."""
    draw = np.random.default_rng(6)
    z = (draw.normal(0, 3, 4000) + 1j * draw.normal(0, 3, 4000)).astype(np.complex64)
    for name, got in evaluate(engine, cd.complex64, list(COMPLEX), z).items():
        want = COMPLEX[name](z.astype(np.complex128))
        near = COMPLEX[name](z.astype(np.complex128) * (1 + 1e-7 + 1e-7j))
        errors = np.abs(got - want) / (8e-7 * np.abs(want) + 8 * np.abs(near - want))
        find_out_of_bounds = int(np.argmax(errors))
        assert errors[find_out_of_bounds] <= 1, (
            name,
            z[find_out_of_bounds],
            got[find_out_of_bounds],
            want[find_out_of_bounds],
        )


@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
def test_powers_are_those_of_ieee_754(device: cd.device, d: dtype) -> None:
    """The error is at most one and a half units in the last place, since logarithms have twice the precision."""
    t = np.float32 if d is cd.float32 else np.float64
    draw = np.random.default_rng(7)
    ends = np.array([0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, np.inf, -np.inf, np.nan, 8388609, 1e-40, -1e30], t)
    x = np.concatenate([np.exp(draw.uniform(-60, 60, 4000)), draw.uniform(0.3, 3, 4000), np.repeat(ends, len(ends))])
    y = np.concatenate([draw.uniform(-2, 2, 4000), draw.uniform(-90, 90, 4000), np.tile(ends, len(ends))])
    x, y = x.astype(t), y.astype(t)
    got = (cd.tensor(x).to(device) ** cd.tensor(y).to(device)).cpu().numpy()
    with np.errstate(all="ignore"):
        want = x.astype(LONG) ** y.astype(LONG)
        rounded = want.astype(t)
        unit = np.spacing(np.where(np.isfinite(rounded), np.abs(rounded), 1))
        wrong = np.where((got == rounded) | (np.isnan(got) & np.isnan(rounded)), 0, np.abs(got - want) / unit)
    assert np.max(wrong) <= 2, (x[np.argmax(wrong)], y[np.argmax(wrong)])
    assert np.array_equal(np.signbit(got[rounded == 0]), np.signbit(rounded[rounded == 0]))


REMAINDERS: dict[str, Callable[[Array, Array], Array]] = {
    "fmod": np.fmod, "remainder": np.remainder, "floor_divide": np.floor_divide,
}  # fmt: skip


@pytest.mark.parametrize("t", [np.float32, np.float64])
@pytest.mark.parametrize("name", REMAINDERS)
def test_remainders_are_exact_of_any_two_numbers(device: cd.device, name: str, t: Any) -> None:
    """Every bit is correct, signs of zeros too: for short and long quotients, any bits and special values."""
    draw = np.random.default_rng(7)
    whole = [2.0**n - less for n in (20, 49) for less in (0, 0.5)]
    sizes = [0, np.finfo(t).smallest_subnormal, 0.1, 0.5, 1, 3, *whole, np.finfo(t).max, np.inf, np.nan]
    every, x = np.array([sign * value for value in sizes for sign in (1, -1)], t), points(t)
    with np.errstate(all="ignore"):
        far = np.ldexp(x * draw.random(x.size).astype(t), draw.integers(-60, 60, x.size))
        near = x * (1 + draw.integers(-3, 4, x.size) * np.finfo(t).eps).astype(t)
        pairs = [np.meshgrid(every, every), *((x, y) for y in (draw.permutation(x), far, near))]
        wanted = [REMAINDERS[name](a, b) for a, b in pairs]
    for (a, b), exact in zip(pairs, wanted, strict=True):
        found = np.from_dlpack(getattr(cd, name)(cd.from_dlpack(a).to(device), cd.from_dlpack(b).to(device)).cpu())
        np.testing.assert_array_equal(found, exact)
        there = ~np.isnan(exact)
        np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(exact[there]))


def test_integers_have_no_negative_powers(device: cd.device) -> None:
    """A Python number raises at the call; squares are products, in place too."""
    x = cd.tensor([3, -2]).to(device)
    with pytest.raises(RuntimeError, match=r"Integers to negative integer powers are not allowed\."):
        x**-1
    assert (x**2).tolist() == [9, 4]
    assert x.pow_(3).tolist() == [27, -8]


def test_a_device_without_float64_has_them_too(single: cd.device) -> None:
    """No float32 function uses float64."""
    x = cd.tensor([0.3, 1e4, -2.5])
    moved = x.to(single)
    for function in (cd.sin, cd.lgamma, cd.digamma, lambda t: t**1.5, cd.atan):
        assert cd.allclose(function(moved).cpu(), function(x), rtol=3e-6, atol=1e-6, equal_nan=True)
    # At -2.5 the slope is 195: an input that is 1 ULP off changes the result by 5e-5.
    assert cd.allclose(cd.polygamma(2, moved).cpu(), cd.polygamma(2, x), rtol=3e-6, atol=2e-5, equal_nan=True)


def test_mantissa_and_exponent(device: cd.device) -> None:
    """Subnormal numbers are supported; 0, infinities and NaN are their own mantissa."""
    x = np.array([0, -0.0, 1, -3.7, 1e-45, 3e38, np.inf, np.nan], np.float32)
    mantissa, exponent = cd.frexp(cd.tensor(x).to(device))
    want, power = np.frexp(x)
    assert np.array_equal(mantissa.cpu().numpy(), want, equal_nan=True)
    assert exponent.cpu().numpy()[:6].tolist() == power[:6].tolist()
    assert exponent.dtype is cd.int32


@pytest.mark.parametrize("t", [np.float32, np.float64])
def test_gelu_is_exact_where_there_is_something_left(device: cd.device, t: Any) -> None:
    """Both tails and the middle are accurate, and small results keep their digits next to any other numbers."""
    x = np.concatenate([np.linspace(-37, 37, 200_001), np.linspace(-1, 1, 40_001), [1e30, -1e30]]).astype(t)
    np.random.default_rng(4).shuffle(x)
    gelu: Function = lambda v: v * special.ndtr(v)  # noqa: E731
    for part in (x, x[x > -5], x[x < -5]):
        got = cd.nn.functional.gelu(cd.tensor(part).to(device)).numpy(force=True)
        assert ratio(got, gelu, part).max() <= 1
    assert np.isnan(cd.nn.functional.gelu(cd.tensor(t(np.nan)).to(device)).item())


def test_rare_values_are_found_in_any_layout(device: cd.device) -> None:
    """A transposed operand, and one element for all, give the numbers that a contiguous one gives."""
    x = cd.tensor(np.linspace(-12, 4, 6000, dtype=np.float32).reshape(60, 100)).to(device)
    want = cd.nn.functional.gelu(x)
    assert bool((cd.nn.functional.gelu(x.t()) == want.t()).all().item())
    assert bool((cd.nn.functional.gelu(x[:, ::3]) == want[:, ::3]).all().item())
    assert bool((cd.nn.functional.gelu(x[:1, :1].expand(30, 50)) == want[0, 0]).all().item())
    assert bool((want[:10] < 0).all().item())


def test_the_bessel_function_of_order_0_is_at_most_1(device: cd.device) -> None:
    """It is 1 at 0, and no number near 0 exceeds it."""
    x = np.concatenate([[0], np.geomspace(1e-30, 1, 1000)]).astype(np.float32)
    got = cd.special.bessel_j0(cd.tensor(x).to(device)).numpy(force=True)
    assert got[0] == 1
    assert got.max() == 1


@pytest.mark.parametrize("d", [cd.float16, cd.float32], ids=str)
def test_special_values_are_those_of_the_reference(device: cd.device, d: dtype) -> None:
    """Limits at infinities, and signs of zeros of odd functions, nextafter and sums of two halves, agree."""
    x = cd.tensor([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], dtype=d)
    moved = x.to(device)
    for function in (cd.i0, cd.special.i1, cd.special.i1e, cd.special.bessel_j1, cd.special.bessel_y0):
        got, want = function(moved).tolist()[:5], function(x).tolist()[:5]
        assert list(map(str, got)) == list(map(str, want))
    for binary in (cd.nextafter, cd.logaddexp2):
        got, want = binary(moved, moved.flip(0)), binary(x, x.flip(0))
        assert list(map(str, got.tolist())) == list(map(str, want.tolist()))
    assert list(map(str, cd.logaddexp2(moved, moved).tolist())) == list(map(str, cd.logaddexp2(x, x).tolist()))
