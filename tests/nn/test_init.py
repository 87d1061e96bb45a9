"""candelabra.nn.init: distributions, orthogonality, the older names, tensors without data."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.stats
from candelabra.nn import init

from tests.nn.network_samples import array


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0.0, 1.0, -2.0, 2.0), (1.0, 2.0, 0.0, 3.0), (0.0, 1.0, 1.0, 2.0), (0.0, 1.0, -7.5, -7.0), (0.0, 1.0, 7.0, 7.5)],
)
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_truncated_normal_draws_have_the_truncated_distribution(mean: float, std: float, a: float, b: float) -> None:
    """Draws pass the Kolmogorov-Smirnov test against SciPy's distribution, also far from the mean."""
    x = init.trunc_normal_(cd.empty(4000), mean, std, a, b)
    assert a <= float(x.min()) <= float(x.max()) <= b
    peer = scipy.stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    assert scipy.stats.kstest(array(x).astype(float), peer.cdf).pvalue > 1e-5


def test_truncated_normal_draws_of_half_types_take_many_values() -> None:
    """float16 draws are computed in float32, so that many different values appear."""
    x = init.trunc_normal_(cd.empty(2000, dtype=cd.float16), std=0.02, a=-0.04, b=0.04)
    assert x.dtype is cd.float16
    assert len(set(x.tolist())) > 1000


def test_a_mean_far_from_the_interval_warns() -> None:
    """A mean more than 2 std away from [a, b] warns as in PyTorch."""
    with pytest.warns(UserWarning, match=r"mean is more than 2 std from \[a, b\] in nn.init.trunc_normal_"):
        init.trunc_normal_(cd.empty(3), 0.0, 1.0, 3.0, 4.0)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (4, 2, 3), (60, 40)])
@pytest.mark.parametrize("dtype", [cd.float32, cd.float16])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...], dtype: Any) -> None:
    """The shorter side is orthonormal times the gain; half types too."""
    w = array(init.orthogonal_(cd.empty(*shape, dtype=dtype), gain=2.0)).reshape(shape[0], -1).astype(np.float64)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=2e-2 if dtype is cd.float16 else 2e-5)


def test_orthogonal_matrices_are_uniform() -> None:
    """The first element of a 2 × 2 rotation or reflection has mean 0: the signs of the factor Q do not show."""
    first = [init.orthogonal_(cd.empty(2, 2))[0, 0].item() for _ in range(200)]
    assert abs(np.mean(first)) < 6 * np.sqrt(0.5 / 200)


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_keeps_channels(groups: int) -> None:
    """A convolution with this weight returns its input's channels, in each group."""
    x = cd.randn(1, 4, 5)
    w = init.dirac_(cd.empty(4, 4 // groups, 3), groups)
    assert cd.conv1d(x, w, padding=1, groups=groups).tolist() == x.tolist()


def test_fans_count_inputs_and_outputs() -> None:
    """The helpers that programs call give PyTorch's numbers and errors."""
    w = cd.empty(6, 4, 3, 2)
    assert init._calculate_fan_in_and_fan_out(w) == (24, 36)
    assert init._calculate_correct_fan(w, "FAN_OUT") == 36
    with pytest.raises(ValueError, match="Mode fan not supported, please use one of"):
        init._calculate_correct_fan(w, "fan")
    with pytest.raises(ValueError, match="can not be computed for tensor with fewer than 2 dimensions"):
        init._calculate_fan_in_and_fan_out(cd.empty(3))


OLD = {
    "uniform": (), "normal": (), "constant": (2.0,), "eye": (), "xavier_uniform": (), "xavier_normal": (),
    "kaiming_uniform": (), "kaiming_normal": (), "orthogonal": (), "sparse": (0.5,),
}  # fmt: skip


@pytest.mark.parametrize("name", [*OLD, "dirac"])
def test_older_names_warn_and_do_the_same(name: str) -> None:
    """A name without underscore gives a FutureWarning and calls the function."""
    x = cd.empty(3, 2, 3) if name == "dirac" else cd.empty(3, 2)
    text = f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`."
    with pytest.warns(FutureWarning) as raised:
        assert getattr(init, name)(x, *OLD.get(name, ())) is x
    assert str(raised[0].message) == text
    assert raised[0].filename == __file__
    assert getattr(init, name).__name__ == name


@pytest.mark.parametrize(
    "function",
    [
        init.trunc_normal_, init.orthogonal_, init.eye_, init.uniform_, init.normal_, init.xavier_normal_,
        lambda w: init.sparse_(w, 0.1), lambda w: init.dirac_(w.unsqueeze(2)),
    ],
)  # fmt: skip
def test_tensors_without_data_are_left(function: Any) -> None:
    """On the device ``meta`` every function returns without drawing."""
    assert function(cd.empty(3, 2, device="meta")).device.type == "meta"
