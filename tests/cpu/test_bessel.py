"""Special functions and nextafter, where SciPy and NumPy lose digits, limits or signs."""

from __future__ import annotations

from math import copysign, inf, isnan

import candelabra as cd
import pytest

DTYPES = [cd.float16, cd.bfloat16, cd.float32, cd.float64]
FUNCTIONS = {
    "i0": cd.i0, "i1": cd.special.i1, "j0": cd.special.bessel_j0, "j1": cd.special.bessel_j1,
    "i1e": cd.special.i1e, "y0": cd.special.bessel_y0, "y1": cd.special.bessel_y1, "k0": cd.special.modified_bessel_k0,
    "k1": cd.special.modified_bessel_k1, "k0e": cd.special.scaled_modified_bessel_k0,
    "k1e": cd.special.scaled_modified_bessel_k1, "lgamma": cd.lgamma,
}  # fmt: skip


@pytest.mark.parametrize("d", DTYPES, ids=str)
def test_bessel_functions_have_their_limits_at_infinity(d: cd.dtype) -> None:
    """I grows and J tends to 0, with the sign of the argument for odd orders; Y is undefined below 0."""
    x = cd.tensor([inf, -inf], dtype=d)
    assert cd.i0(x).tolist() == [inf, inf]
    assert cd.special.i1(x).tolist() == [inf, -inf]
    for name in ("j0", "j1"):
        assert FUNCTIONS[name](x).tolist() == [0, 0]
    for name in ("y0", "y1"):
        upper, lower = FUNCTIONS[name](x).tolist()
        assert upper == 0
        assert isnan(lower)


@pytest.mark.parametrize("d", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["i1", "i1e", "j1"])
def test_odd_functions_keep_the_sign_of_a_zero(name: str, d: cd.dtype) -> None:
    """The result for -0.0 is -0.0, as for sin."""
    found = FUNCTIONS[name](cd.tensor([0.0, -0.0], dtype=d)).tolist()
    assert [copysign(1, v) for v in found] == [1, -1]
    assert found == [0, 0]


def test_an_infinity_among_many_and_one_alone_have_the_same_limit() -> None:
    """A scalar, and an array that is computed in blocks, give the same limit."""
    assert cd.i0(cd.tensor(-inf)).item() == inf
    many = cd.ones(70_001)
    many[69_999] = inf
    assert cd.special.bessel_y1(many)[-2:].tolist() == [0, pytest.approx(-0.7812128213)]


def test_the_second_kind_of_the_smallest_numbers() -> None:
    """K0 is finite although half of the number underflows; K1 overflows to infinity; a scale near 1 changes nothing."""
    x = cd.tensor([5e-324, 1e-310, 1e-31], dtype=cd.float64)
    logarithms = [744.55600343703967476, 713.91731034381257755, 71.49606939847382857]
    for name in ("k0", "k0e"):
        assert FUNCTIONS[name](x).tolist() == pytest.approx(logarithms, rel=4e-16)
    for name in ("k1", "k1e"):
        assert FUNCTIONS[name](x).tolist() == [inf, inf, pytest.approx(1e31, rel=4e-16)]


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("y1", 4.885628007643821, 0.18596454364294481747),
        ("y0", 3.75, 0.085256756977362699539),
        ("j1", 2.225073858507202e-308, 1.1125369292536009386e-308),
        ("i0", 0.0023517853376819886, 1.0000013827240466152),
        ("i1", 0.0023517853376819886, 0.0011758934818084353507),
        ("lgamma", 1.0001, -5.7713342220471268005e-05),
        ("lgamma", 0.9999, 5.7729791561193862808e-05),
        ("lgamma", 1.9999, -4.2275208772153458011e-05),
        ("lgamma", 2.000282645, 0.00011952363818278789468),
    ],
)
def test_float64_has_its_digits(name: str, x: float, want: float) -> None:
    """The error is at most 3e-15, where SciPy's is up to 1e-11; the values are computed to 30 digits."""
    assert FUNCTIONS[name](cd.tensor(x, dtype=cd.float64)).item() == pytest.approx(want, rel=3e-15, abs=0)


def test_the_second_derivative_of_i1_near_zero() -> None:
    """It is 3 x / 8, although rounding errors of 1 are divided by x twice."""
    x = cd.linspace(1.5e-3, 3e-3, 500, dtype=cd.float64, requires_grad=True)
    (slope,) = cd.autograd.grad(cd.special.i1(x).sum(), x, create_graph=True)
    (second,) = cd.autograd.grad(slope.sum(), x)
    want = 0.375 * x.detach() * (1 + x.detach() ** 2 * (5 / 36))
    assert float(abs(second - want).max()) < 8 * 2.0**-53 / 1.5e-3


@pytest.mark.parametrize("d", DTYPES, ids=str)
def test_the_neighbour_of_a_zero_towards_the_other_is_the_other(d: cd.dtype) -> None:
    """As in C, equal numbers give the second one; NumPy's float16 gives the first."""
    found = cd.nextafter(cd.tensor([0.0, -0.0, 1.0], dtype=d), cd.tensor([-0.0, 0.0, 1.0], dtype=d)).tolist()
    assert [copysign(1, v) for v in found] == [-1, 1, 1]
    assert found == [0, 0, 1]
