"""Kernels in C are as exact as the owner's where a simpler formula would not be."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import own_kernels, serve_every_size
from candelabra.nn import functional as F


@pytest.mark.parametrize(("shape", "dim"), [((20_001,), 0), ((3000, 40), 0), ((3000, 3), 0)], ids=str)
def test_long_cumulative_sums_of_float64_are_as_exact_as_the_owners(shape: tuple[int, ...], dim: int) -> None:
    """Terms are added in blocks, in rows and in columns: the error grows with the square root of their number."""
    values = np.random.default_rng(5).standard_normal(shape)
    exact = np.cumsum(values.astype(np.longdouble), dim)
    x = cd.tensor(values)
    with serve_every_size():
        error = np.abs(x.cumsum(dim).numpy() - exact).max()
    with own_kernels():
        error_of_owner = np.abs(x.cumsum(dim).numpy() - exact).max()
    in_turn = np.abs(np.cumsum(values, dim) - exact).max()
    assert error <= 1.5 * error_of_owner
    assert error < in_turn


def test_the_gradient_of_gelu_in_float32_keeps_its_digits_far_below_zero() -> None:
    """From -13 on, where it is 1e-36, the relative error is that of rounding the input."""
    values = np.linspace(-13, -5, 2001, dtype=np.float32)
    gradients = []
    for d in (cd.float32, cd.float64):
        x = cd.tensor(values).to(d).requires_grad_()
        with serve_every_size():
            F.gelu(x).sum().backward()
        assert x.grad is not None
        gradients.append(x.grad.numpy().astype(np.float64))
    single, double = gradients
    assert (np.abs(single / double - 1) < 0.5 * values.astype(np.float64) ** 2 * 2.0**-23).all()


@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
def test_subnormal_results_of_gelu_are_those_of_wider_arithmetic(d: cd.dtype) -> None:
    """They are rounded once, by integers; past them the result is -0, and the gradient of the identity above 0."""
    ends, smallest = ((-14.5, -12.9), 2.0**-149) if d is cd.float32 else ((-38.8, -37.6), 2.0**-1074)
    values = np.linspace(*ends, 4001).astype(np.float32 if d is cd.float32 else np.float64)
    wide = values.astype(np.longdouble)
    # The continued fraction of the normal distribution's tail (Laplace), from its end.
    fraction = np.zeros_like(wide)
    for k in range(200, 0, -1):
        fraction = k / (-wide + fraction)
    exact = wide * np.exp(-(wide**2) / 2) / np.sqrt(2 * np.arccos(np.longdouble(-1))) / (-wide + fraction)
    with serve_every_size():
        found = F.gelu(cd.tensor(values)).numpy().astype(np.longdouble)
        ends_of_range = F.gelu(cd.tensor([-1000.0, -40.0, 1000.0], dtype=d))
    rounding = np.abs(exact) * wide**2 * np.finfo(values.dtype).eps
    assert (np.abs(found - exact) <= 0.51 * np.longdouble(smallest) + rounding).all()
    assert ends_of_range.tolist() == [0, 0, 1000]


def test_a_value_of_gelu_does_not_depend_on_its_neighbours() -> None:
    """A block with a far value runs another loop, which gives near values the same bits."""
    near = cd.linspace(-5, 6, 3000)
    far = cd.arange(3000) % 300 == 299  # in every third block or so, and in the last one, which is a part of one
    with serve_every_size():
        alone, beside = F.gelu(near), F.gelu(cd.where(far, -9.0, near))
        ends = F.gelu(cd.full((1,), -9.0))
    assert cd.equal(cd.where(far, 0.0, alone), cd.where(far, 0.0, beside))
    assert cd.equal(beside[far], ends.expand(10))


HALF_PI = np.longdouble(2) * np.arctan(np.longdouble(1))
"""Half of pi to 64 bits."""


@pytest.mark.parametrize(("d", "near"), [(np.float32, 1024), (np.float64, 1 << 20)], ids=["float32", "float64"])
def test_sines_keep_their_digits_next_to_multiples_of_a_quarter_turn(d: type[np.floating[Any]], near: int) -> None:
    """The argument is reduced by parts of pi / 2 with exact products, and from a bound on by integers.

    The bound in units of the last place is 1.5 times the most that a search over 500,000 arguments found.
    """
    quarters = np.arange(-1.2 * near / 1.57, 1.2 * near / 1.57, near / 1024).round()
    middle = (quarters * HALF_PI).astype(d)
    adjacent = [middle, np.nextafter(middle, d(np.inf)), np.nextafter(middle, d(-np.inf))]
    # Wider arithmetic has 11 bits more than float64: next to multiples of pi / 2 it knows only float32's digits.
    between = np.random.default_rng(3).uniform(-1.2 * near, 1.2 * near, 20_000).astype(d)
    values = np.concatenate([*(adjacent if d is np.float32 else []), between])
    x = cd.tensor(values)
    for function, exact, bound in ((cd.sin, np.sin, 3.6), (cd.cos, np.cos, 3.6), (cd.tan, np.tan, 4.8)):
        with serve_every_size():
            found = function(x).numpy()
        expected = exact(values.astype(np.longdouble))
        error = np.abs(found - expected) / np.spacing(np.abs(expected.astype(d))).astype(np.longdouble)
        assert error.max() <= bound, (function, error.max(), values[error.argmax()])


@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
def test_sines_of_zeros_and_of_what_is_not_finite(d: cd.dtype) -> None:
    """The sign of zero is kept, also next to an argument that is reduced by integers; infinities have no sine."""
    x = cd.tensor([-0.0, 0.0, cd.inf, -cd.inf, cd.nan, 1e20], dtype=d)
    for values in (x, x[:2]):
        with serve_every_size():
            sines, tangents, cosines = cd.sin(values), cd.tan(values), cd.cos(values)
        for found in (sines, tangents):
            assert cd.signbit(found[:2]).tolist() == [True, False]
            assert found[:2].tolist() == [0, 0]
        assert cosines[:2].tolist() == [1, 1]
        if values is x:
            assert sines[2:5].isnan().all()
            assert cosines[2:5].isnan().all()
            assert tangents[2:5].isnan().all()


def test_a_sine_does_not_depend_on_its_neighbours() -> None:
    """A block with a far argument runs another loop, which gives near arguments the same bits."""
    near = cd.linspace(-1000, 1000, 3000)
    far = cd.arange(3000) % 300 == 299
    with serve_every_size():
        for function in (cd.sin, cd.cos, cd.tan):
            beside = function(cd.where(far, 1e9, near))
            assert cd.equal(cd.where(far, 0.0, function(near)), cd.where(far, 0.0, beside))
