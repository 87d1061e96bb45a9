"""Special functions compared with SciPy, for ordinary and extreme arguments."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.special as sp
from candelabra._records.registry import OPERATORS

INF, NAN = math.inf, math.nan
UNARY: dict[str, tuple[Any, float, float]] = {
    "special.airy_ai": (lambda x: sp.airy(x)[0], -10, 10),
    "special.bessel_j0": (sp.j0, -20, 20),
    "special.bessel_j1": (sp.j1, -20, 20),
    "special.bessel_y0": (sp.y0, 0, 20),
    "special.bessel_y1": (sp.y1, 0, 20),
    "special.digamma": (sp.psi, -5, 20),
    "special.entr": (sp.entr, -1, 3),
    "special.erf": (sp.erf, -4, 4),
    "special.erfc": (sp.erfc, -4, 10),
    "special.erfcx": (sp.erfcx, -4, 100),
    "special.erfinv": (sp.erfinv, -1, 1),
    "special.exp2": (sp.exp2, -5, 5),
    "special.expit": (sp.expit, -10, 10),
    "special.expm1": (sp.expm1, -1, 5),
    "special.gammaln": (sp.gammaln, -5, 50),
    "special.i0": (sp.i0, -10, 10),
    "special.i0e": (sp.i0e, -50, 50),
    "special.i1": (sp.i1, -10, 10),
    "special.i1e": (sp.i1e, -50, 50),
    "special.log1p": (sp.log1p, -0.9, 5),
    "special.log_ndtr": (sp.log_ndtr, -50, 10),
    "special.logit": (sp.logit, 0, 1),
    "special.modified_bessel_i0": (sp.i0, -10, 10),
    "special.modified_bessel_i1": (sp.i1, -10, 10),
    "special.modified_bessel_k0": (sp.k0, 0, 10),
    "special.modified_bessel_k1": (sp.k1, 0, 10),
    "special.ndtr": (sp.ndtr, -10, 10),
    "special.ndtri": (sp.ndtri, 0, 1),
    "special.psi": (sp.psi, -5, 20),
    "special.scaled_modified_bessel_k0": (sp.k0e, 0, 100),
    "special.scaled_modified_bessel_k1": (sp.k1e, 0, 100),
    "special.sinc": (np.sinc, -5, 5),
    "special.spherical_bessel_j0": (lambda x: sp.spherical_jn(0, x), -20, 20),
}
BINARY: dict[str, Any] = {
    "special.gammainc": sp.gammainc,
    "special.gammaincc": sp.gammaincc,
    "special.xlog1py": sp.xlog1py,
    "special.xlogy": sp.xlogy,
}


def public(name: str) -> Any:
    """Return the function with a dotted name."""
    found: Any = cd
    for part in name.split("."):
        found = getattr(found, part)
    return found


def close(got: Any, want: Any, precision: float) -> None:
    """Assert that values are equal up to a relative precision, or an equal absolute one near 0."""
    np.testing.assert_allclose(got.detach().numpy().astype(np.float64), want, rtol=precision, atol=precision)


# -- one argument -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", UNARY)
def test_values_are_scipys(name: str, rng: np.random.Generator) -> None:
    """float64, float32 and the half types, which are computed in float32, agree."""
    reference, low, high = UNARY[name]
    x = rng.uniform(low, high, (5, 7))
    with np.errstate(all="ignore"):
        close(public(name)(cd.tensor(x)), reference(x), 1e-11)
        for dtype, precision in ((cd.float32, 3e-5), (cd.float16, 4e-3), (cd.bfloat16, 3e-2)):
            arguments = cd.tensor(x).to(dtype)
            got, want = public(name)(arguments), reference(arguments.to(cd.float64).numpy())
            assert got.dtype is dtype
            kept = np.abs(want) < 1e4 if dtype is cd.float16 else np.ones_like(want, bool)
            np.testing.assert_allclose(got.to(cd.float64).numpy()[kept], want[kept], rtol=precision, atol=precision)


@pytest.mark.parametrize("name", UNARY)
def test_integers_and_bools_become_floating_and_shapes_are_kept(name: str) -> None:
    """Promotion is PyTorch's; 0-d and empty tensors keep their shapes."""
    function = public(name)
    if name != "special.entr":
        assert function(cd.tensor([1, 2])).dtype is cd.float32
        assert function(cd.tensor([True, False])).dtype is cd.float32
    assert function(cd.tensor(0.5)).shape == ()
    assert function(cd.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("name", UNARY)
def test_nan_stays_nan(name: str) -> None:
    """Every function propagates NaN."""
    assert math.isnan(public(name)(cd.tensor(NAN)).item())


EXTREMES = [
    ("special.gammaln", [INF, -INF, 0.0, -1.0, 1e300], [INF, INF, INF, INF, 6.897755278982137e302]),
    ("special.gammaln", [5e-324, -1e-310], [744.4400719213812, 713.8013788281424]),
    ("special.digamma", [0.0, -0.0, -1.0, INF], [-INF, INF, NAN, INF]),
    ("special.erf", [INF, -INF], [1.0, -1.0]),
    ("special.erfc", [INF, -INF, 30.0], [0.0, 2.0, 0.0]),
    ("special.erfinv", [1.0, -1.0, 1.5], [INF, -INF, NAN]),
    ("special.erfcx", [INF, 1e10], [0.0, 5.641895835477563e-11]),
    ("special.entr", [0.0, -1.0, INF], [0.0, -INF, -INF]),
    ("special.ndtr", [INF, -INF, 0.0], [1.0, 0.0, 0.5]),
    ("special.ndtri", [0.0, 1.0, 2.0], [-INF, INF, NAN]),
    ("special.log_ndtr", [INF, -1e10, 0.0], [0.0, -5e19, -math.log(2)]),
    ("special.logit", [0.0, 1.0, 1.5], [-INF, INF, NAN]),
    ("special.sinc", [0.0, 1e-300, 1.0, -2.0, 1e300], [1.0, 1.0, 0.0, 0.0, 0.0]),
    ("special.spherical_bessel_j0", [0.0, INF, -INF], [1.0, 0.0, 0.0]),
    ("special.airy_ai", [INF, 1e30, 0.0], [0.0, 0.0, 0.3550280538878172]),
    ("special.modified_bessel_k0", [0.0, -1.0, INF], [INF, NAN, 0.0]),
    ("special.bessel_y0", [0.0, -1.0], [-INF, NAN]),
    ("special.i0e", [1e300], [0.0]),
]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"), EXTREMES, ids=[f"{e[0]}-{i}" for i, e in enumerate(EXTREMES)]
)
def test_limits_poles_and_the_outside_of_domains(name: str, arguments: list[float], expected: list[float]) -> None:
    """Infinities, zeros, poles and arguments outside the domain are correct."""
    got = public(name)(cd.tensor(arguments, dtype=cd.float64)).tolist()
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-300 if name == "special.erfc" else 1e-150)


def test_complex_tensors_are_refused() -> None:
    """The class of the error is PyTorch's; sinc supports complex tensors."""
    with pytest.raises(NotImplementedError, match="\"lgamma\" not implemented for 'ComplexFloat'"):
        cd.lgamma(cd.tensor(1j))
    got = cd.sinc(cd.tensor([0.5 + 0.5j, 0j], dtype=cd.complex128))
    close(got.real, np.sinc(np.array([0.5 + 0.5j, 0])).real, 1e-14)
    close(got.imag, np.sinc(np.array([0.5 + 0.5j, 0])).imag, 1e-14)


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "logit", "sinc", "xlogy", "igamma"]
)
@pytest.mark.usefixtures("owner_alone")  # kernels of other makers may serve other layouts
def test_the_methods_are_in_place_too(name: str, rng: np.random.Generator) -> None:
    """``x.erf_()`` writes the result of ``x.erf()`` to x, and ``out=`` gets the same; strided views too."""
    base = cd.tensor(rng.uniform(0.1, 0.9, (4, 6)), dtype=cd.float32)
    rest = (base.t().clone().t(),) if name in ("xlogy", "igamma") else ()
    want = getattr(base, name)(*rest).tolist()
    assert public(name)(base.t().clone().t(), *rest).tolist() == want
    out = cd.empty(4, 6)
    assert public(name)(base, *rest, out=out) is out
    assert out.tolist() == want
    assert getattr(base, name + "_")(*rest) is base
    assert base.tolist() == want


# -- two arguments ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BINARY)
def test_values_of_two_arguments_are_scipys(name: str, rng: np.random.Generator) -> None:
    """Arguments broadcast, and integers are promoted to floats."""
    x, y = rng.uniform(0.1, 5, (3, 1)), rng.uniform(0.1, 5, 4)
    close(public(name)(cd.tensor(x), cd.tensor(y)), BINARY[name](x, y), 1e-11)
    half = public(name)(cd.tensor(x).half(), cd.tensor(y).half())
    assert half.dtype is cd.float16
    assert half.shape == (3, 4)
    assert public(name)(cd.tensor([1, 2]), cd.tensor([3, 4])).dtype is cd.float32
    assert public(name)(cd.empty(0, 1), cd.empty(4)).shape == (0, 4)


@pytest.mark.parametrize("name", ["special.xlogy", "special.xlog1py"])
def test_zero_times_a_logarithm_is_zero(name: str) -> None:
    """The result is 0 even if the logarithm is infinite or undefined, but not for NaN. Either argument may be a
    number."""
    function = public(name)
    pole = 0.0 if name == "special.xlogy" else -1.0
    got = function(cd.tensor([0.0, 0.0, 0.0, 1.0]), cd.tensor([pole, -5.0, NAN, pole])).tolist()
    assert got[:2] == [0.0, 0.0]
    assert math.isnan(got[2])
    assert got[3] == -INF
    assert function(0, cd.tensor([pole])).tolist() == [0.0]
    assert function(cd.tensor([2.0, 0.0]), 3).tolist() == pytest.approx([2 * math.log(3 - pole), 0.0])


def test_incomplete_gamma_functions_where_scipy_is_slow(rng: np.random.Generator) -> None:
    """Arguments from 1/2 to 1.1 are correct in both functions, also in float32; their sum is 1."""
    a, x = rng.uniform(0, 3, 500), rng.uniform(0.4, 1.2, 500)
    for dtype, precision in ((cd.float64, 1e-12), (cd.float32, 1e-5)):
        arguments = cd.tensor(a, dtype=dtype), cd.tensor(x, dtype=dtype)
        np.testing.assert_allclose(cd.igamma(*arguments).numpy(), sp.gammainc(a, x), rtol=precision)
        np.testing.assert_allclose(cd.igammac(*arguments).numpy(), sp.gammaincc(a, x), rtol=precision)
    got = cd.igammac(cd.tensor([0.0, 0.5, -1.0, NAN]), cd.tensor([1.0, NAN, 0.7, 0.7])).tolist()
    assert got[0] == 0.0
    assert all(map(math.isnan, got[1:]))
    assert cd.igamma(cd.tensor([[0.5], [2.0]]), cd.tensor([1.05, 0.6, 3.0])).shape == (2, 3)


def test_zeta_is_hurwitzs() -> None:
    """Either argument may be a tensor or a number."""
    close(cd.special.zeta(cd.tensor([2.0, 3.5], dtype=cd.float64), 1.5), sp.zeta([2.0, 3.5], 1.5), 1e-13)
    close(cd.special.zeta(2, cd.tensor([1.0, 7.0])), sp.zeta(2, [1.0, 7.0]), 1e-6)
    assert cd.special.zeta(cd.tensor([1.0, 0.5]), 1).tolist()[0] == INF
    with pytest.raises(TypeError, match="at least one argument must be a Tensor"):
        cd.special.zeta(2, 3)


def test_inputs_without_a_derivative_say_so() -> None:
    """The order of an incomplete gamma function and of zeta raises an error instead of a gradient of 0."""
    a, x = cd.tensor([1.5], requires_grad=True), cd.tensor([2.0])
    for function, name in (
        (cd.igamma, "igamma: input"),
        (cd.igammac, "igammac: input"),
        (cd.special.zeta, "special_zeta: self"),
    ):
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented."):
            function(a, x).backward()


# -- polygamma and the multivariate gamma function --------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma_is_scipys(n: int, rng: np.random.Generator) -> None:
    """Function, method, in-place form and ``out=`` agree; trigamma of negative numbers uses reflection."""
    x = rng.uniform(0.01, 30, 200)
    want = sp.polygamma(n, x)
    arguments = cd.tensor(x)
    np.testing.assert_allclose(cd.polygamma(n, arguments).numpy(), want, rtol=1e-13, atol=1e-13)
    assert arguments.polygamma(n).tolist() == cd.special.polygamma(n, arguments).tolist()
    out = cd.empty(200, dtype=cd.float64)
    assert cd.polygamma(n, arguments, out=out).tolist() == arguments.polygamma(n).tolist()
    assert arguments.polygamma_(n).tolist() == out.tolist()
    left = rng.uniform(-10, 0, 50)
    np.testing.assert_allclose(cd.polygamma(1, cd.tensor(left)).numpy(), sp.polygamma(1, left), rtol=1e-12)
    np.testing.assert_allclose(cd.polygamma(2, cd.tensor(left)).numpy(), sp.polygamma(2, left), rtol=1e-10)


def test_trigamma_has_poles_and_limits() -> None:
    """It is infinite at 0, -1, … and 0 at infinity."""
    got = cd.polygamma(1, cd.tensor([0.0, -1.0, -7.0, INF, -INF, NAN])).tolist()
    assert got[:4] == [INF, INF, INF, 0.0]
    assert math.isnan(got[4])
    assert math.isnan(got[5])


def test_polygamma_refuses_other_orders() -> None:
    """Negative and fractional orders are errors."""
    with pytest.raises(RuntimeError, match=r"polygamma\(n, x\) does not support negative n\."):
        cd.polygamma(-1, cd.ones(2))
    with pytest.raises(TypeError, match=r"argument 'n'.* must be int, not float"):
        cd.polygamma(1.5, cd.ones(2))
    assert cd.polygamma(200, cd.tensor([1.0])).tolist() == [-INF]


def test_mvlgamma_is_scipys(rng: np.random.Generator) -> None:
    """``multigammaln`` is an alias; ``p`` below 1 is refused."""
    x = rng.uniform(3, 9, (2, 3))
    want = np.vectorize(lambda v: sp.multigammaln(v, 4))(x)
    close(cd.mvlgamma(cd.tensor(x), 4), want, 1e-13)
    close(cd.special.multigammaln(cd.tensor(x), p=4), want, 1e-13)
    assert cd.mvlgamma(cd.tensor([5, 6]), 2).dtype is cd.float32
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        cd.mvlgamma(cd.ones(2), 0)


def test_logit_limits_its_input() -> None:
    """``eps`` clamps to [eps, 1 - eps]; outside, the gradient is 0, and NaN without ``eps``."""
    x = cd.tensor([-0.5, 0.25, 1.5], dtype=cd.float64, requires_grad=True)
    y = cd.logit(x, eps=0.1)
    close(y, sp.logit([0.1, 0.25, 0.9]), 1e-14)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [0, 1 / (0.25 * 0.75), 0])
    x.grad = None
    cd.logit(x).sum().backward()
    assert [math.isnan(v) for v in x.grad.tolist()] == [True, False, True]


def test_entr_is_steep_at_zero() -> None:
    """The derivative is infinite at 0, and NaN below."""
    x = cd.tensor([0.0, 1.0, -1.0], requires_grad=True)
    cd.special.entr(x).sum().backward()
    got = x.grad.tolist()
    assert got[:2] == [INF, -1.0]
    assert math.isnan(got[2])


# -- softmax and related functions ------------------------------------------------------------------------------------
def test_special_has_softmax_and_logsumexp(rng: np.random.Generator) -> None:
    """``dim`` and ``dtype`` are PyTorch's; logsumexp supports complex numbers and empty input."""
    x = rng.normal(size=(3, 4))
    close(cd.special.softmax(cd.tensor(x), 1), sp.softmax(x, 1), 1e-13)
    close(cd.special.log_softmax(cd.tensor(x), 0), sp.log_softmax(x, 0), 1e-13)
    assert cd.special.softmax(cd.tensor([1, 2]), 0, dtype=cd.float64).dtype is cd.float64
    close(cd.special.logsumexp(cd.tensor(x), 1), sp.logsumexp(x, 1), 1e-13)
    z = cd.tensor([1 + 2j, 0.5 - 1j], dtype=cd.complex128, requires_grad=True)
    assert cd.logsumexp(z, 0).item() == pytest.approx(np.log(np.exp([1 + 2j, 0.5 - 1j]).sum()))
    assert cd.autograd.gradcheck(lambda v: cd.logsumexp(v, 0), (z,))
    assert cd.logsumexp(cd.empty(0, 2), 0).tolist() == [-INF, -INF]


@pytest.mark.parametrize(("name", "scale"), [("special.sinc", math.pi), ("special.spherical_bessel_j0", 1.0)])
@pytest.mark.parametrize(("d", "eps"), [(cd.float32, 2.0**-23), (cd.float64, 2.0**-52)])
def test_slopes_of_sine_quotients_keep_their_digits_near_0(name: str, scale: float, d: cd.dtype, eps: float) -> None:
    """The first derivative equals that of SciPy's spherical Bessel functions, and so does the second."""
    x = cd.tensor([0.0, 1e-6, -1e-3, 0.01, 0.1, -0.29, 0.33, 0.9, 1.5], dtype=d, requires_grad=True)
    function = getattr(cd.special, name.removeprefix("special."))
    (first,) = cd.autograd.grad(function(x).sum(), x, create_graph=True)
    angles = np.asarray(x.tolist()) * scale
    np.testing.assert_allclose(first.tolist(), -scale * sp.spherical_jn(1, angles), rtol=16 * eps, atol=4 * eps)
    (second,) = cd.autograd.grad(first.sum(), x)
    slope = -scale * scale * sp.spherical_jn(1, angles, derivative=True)
    np.testing.assert_allclose(second.tolist(), slope, rtol=32 * eps, atol=32 * eps)


# -- bodies -----------------------------------------------------------------------------------------------------------
COMPOSED = {
    "special_ndtr": (-9.0, 9.0), "special_log_ndtr": (-30.0, 9.0), "special_entr": (-1.0, 3.0), "logit": (0.01, 0.99),
    "sinc": (-3.0, 3.0), "xlogy": (0.0, 3.0), "special_xlog1py": (0.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_a_body_agrees_with_the_kernel_that_overrides_it(name: str, rng: np.random.Generator) -> None:
    """Devices without the kernel compute the same values."""
    record = OPERATORS[name]
    x = cd.tensor(rng.uniform(*COMPOSED[name], 100))
    rest = [x.flip(0) for p in record.schema.parameters[1:] if p.kind == "operand"]
    np.testing.assert_allclose(record.body(x, *rest).numpy(), record(x, *rest).numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_the_body_of_polygamma_agrees_with_its_kernel(n: int, rng: np.random.Generator) -> None:
    """The body uses the zeta function."""
    record = OPERATORS["polygamma_of"]
    x = cd.tensor(rng.uniform(0.1, 20, 100))
    np.testing.assert_allclose(record.body(x, n).numpy(), record(x, n).numpy(), rtol=1e-12)
