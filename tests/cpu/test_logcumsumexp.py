"""logcumsumexp of float64: accurate over long rows, whatever the range of the elements."""

import candelabra as cd
import numpy as np
import pytest

needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="the truth takes a dtype wider than float64"
)


@needs_long_double
@pytest.mark.parametrize("dim", [0, 1])
def test_long_rows_keep_their_digits(dim: int) -> None:
    """A logarithm per term would lose 60 units in the last place; the kernel loses few along either dim."""
    x = np.random.default_rng(1).uniform(-2, 2, (2, 20_001))
    want = np.log(np.cumsum(np.exp(x.astype(np.longdouble)), 1)).astype(np.float64)
    got = cd.logcumsumexp(cd.tensor(x if dim else np.ascontiguousarray(x.T)), dim).numpy()
    assert (np.abs((got if dim else got.T) - want) / np.spacing(want)).max() < 8


def test_any_range_and_special_values() -> None:
    """Terms much smaller than later ones of their block are still correct; NaN and infinities propagate."""
    inf, nan = np.inf, np.nan
    rows = np.array([
        [-1e308, -800.0, 0.0, 800.0, -inf, 5.0], [-inf, -1e5, -1e5, -99.0, 1e5, 0.0], [nan, 1.0, 2.0, 3.0, 4.0, 5.0],
        [1.0, inf, 2.0, -inf, nan, 3.0], [-inf] * 6, [800.0, 0.0, inf, 0.0, -800.0, 1.0],
    ])  # fmt: skip
    with np.errstate(invalid="ignore"):
        want = np.logaddexp.accumulate(rows, 1)
    np.testing.assert_allclose(cd.logcumsumexp(cd.tensor(rows), 1).numpy(), want, rtol=1e-15)
    long = np.concatenate([np.full(3000, -1000.0), rows[0], np.full(3000, 1.0), np.full(5, 900.0)])
    got = cd.logcumsumexp(cd.tensor(long), 0).numpy()
    np.testing.assert_allclose(got, np.logaddexp.accumulate(long), rtol=1e-13)
