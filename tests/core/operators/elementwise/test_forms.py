"""Aliases, in-place forms and large arrays, which all elementwise operators have in common."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest

NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "fix": "trunc", "negative": "neg",
}  # fmt: skip
PAIRS = {
    "arctan2": "atan2", "divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "multiply": "mul", "not_equal": "ne", "subtract": "sub", "true_divide": "div",
}  # fmt: skip


@pytest.mark.parametrize("name", [*NAMES, *PAIRS])
def test_a_second_name_is_a_function_a_method_and_in_place(name: str) -> None:
    """An alias gives the same result as the operator's name."""
    rng = np.random.default_rng(42)
    first = {**NAMES, **PAIRS}[name]
    x = cd.tensor(rng.uniform(0.2, 0.9, 5))
    rest = (x.flip(0),) if name in PAIRS else ()
    want = getattr(cd, first)(x, *rest)
    assert getattr(cd, name)(x, *rest).tolist() == pytest.approx(want.tolist(), nan_ok=True)
    assert getattr(x, name)(*rest).dtype is want.dtype
    y = x.clone()
    assert getattr(y, name + "_")(*rest) is y
    assert y.tolist() == pytest.approx(want.to(y.dtype).tolist(), nan_ok=True)


def test_a_composite_in_place_is_recorded() -> None:
    """Autograd records its operators, which may save values before the write."""
    x = cd.tensor([0.5, 1.0], requires_grad=True)
    y = x * 1
    y.deg2rad_().sum().backward()
    assert x.grad.tolist() == pytest.approx([np.pi / 180] * 2)
    x.grad = None
    y = x * 2
    y.mvlgamma_(1).sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * (x.detach() * 2).digamma()).tolist())


def test_activations_in_place_are_functions() -> None:
    """They are functions of the top-level namespace, as in PyTorch."""
    for name, rest in (("selu", ()), ("celu", (1.5,)), ("threshold", (0.1, 7.0))):
        x = cd.tensor([-1.0, 0.5])
        want = getattr(cd, name)(x, *rest).tolist()
        assert getattr(cd, name + "_")(x, *rest) is x
        assert x.tolist() == want


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", ["exp", "atanh", "log1p", "tan", "atan2", "hypot"])
def test_large_arrays_give_what_small_ones_give(name: str, dtype: str) -> None:
    """Large arrays are computed in blocks: contiguous or not, in place, up to the last element."""
    rng = np.random.default_rng(42)
    if dtype == "complex64" and name in ("atan2", "hypot"):
        return
    x = rng.uniform(0.1, 0.9, (3, 50_001)).astype(dtype)
    given, rest = cd.tensor(x), (0.5,) * 0 if name not in ("atan2", "hypot") else (cd.tensor(x[:, ::-1].copy()),)
    want = cd.stack([getattr(row, name)(*(r[i] for r in rest)) for i, row in enumerate(given)]).numpy()
    rows = np.stack([getattr(cd.tensor(x[i, :100]), name)(*(r[i, :100] for r in rest)).numpy() for i in range(3)])
    tolerance = 1e-6 if dtype != "float64" else 1e-14
    got = getattr(given, name)(*rest).numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance)
    np.testing.assert_allclose(got[:, :100], rows, rtol=tolerance)
    turned = getattr(given.t(), name)(*(r.t() for r in rest)).numpy()
    np.testing.assert_allclose(turned, got.T, rtol=tolerance)
    assert getattr(given, name + "_")(*rest) is given
    np.testing.assert_allclose(given.numpy(), got, rtol=tolerance)
