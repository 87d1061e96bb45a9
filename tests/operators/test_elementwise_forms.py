"""Second names, bounds that are tensors, in-place composites, and questions about tensors."""

from __future__ import annotations

from typing import Any

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
def test_a_second_name_is_a_function_a_method_and_in_place(name: str, rng: np.random.Generator) -> None:
    """And gives what the first name gives."""
    first = {**NAMES, **PAIRS}[name]
    x = cd.tensor(rng.uniform(0.2, 0.9, 5))
    rest = (x.flip(0),) if name in PAIRS else ()
    want = getattr(cd, first)(x, *rest)
    assert getattr(cd, name)(x, *rest).tolist() == pytest.approx(want.tolist(), nan_ok=True)
    assert getattr(x, name)(*rest).dtype is want.dtype
    y = x.clone()
    assert getattr(y, name + "_")(*rest) is y
    assert y.tolist() == pytest.approx(want.to(y.dtype).tolist(), nan_ok=True)


# -- bounds -----------------------------------------------------------------------------------------------------------
def test_clamp_takes_numbers_and_tensors_as_bounds() -> None:
    """Mixed, broadcast, by keyword and in place; a floating bound makes integers floating; clip is its other name."""
    x = cd.tensor([[1, 5, 9]])
    assert cd.clamp(x, 2, cd.tensor([[8], [4]])).tolist() == [[2, 5, 8], [2, 4, 4]]
    assert x.clip(max=4.5).tolist() == [[1.0, 4.5, 4.5]]
    assert cd.clamp_min(x, cd.tensor([6])).tolist() == [[6, 6, 9]]
    assert x.clone().clamp_(min=cd.tensor(3), max=7).tolist() == [[3, 5, 7]]
    assert x.clone().clamp_max_(4).tolist() == [[1, 4, 4]]
    out = cd.empty(1, 3, dtype=cd.int64)
    assert cd.clip(x, 2, 6, out=out) is out
    assert out.tolist() == [[2, 5, 6]]
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        cd.clamp(x)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        cd.clamp(cd.tensor(1j), 0)


def test_bounds_get_the_gradient_of_what_they_replace() -> None:
    """An element on its bound keeps its own."""
    x = cd.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    low, high = cd.tensor(2.0, requires_grad=True), cd.tensor([3.0], requires_grad=True)
    x.clamp(low, high).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert low.grad.item() == 1.0
    assert high.grad.tolist() == [1.0]


def test_where_takes_two_numbers() -> None:
    """Their dtype is the one that they have by themselves; ``out=`` too."""
    condition = cd.tensor([True, False])
    assert cd.where(condition, 1, 0).dtype is cd.int64
    assert cd.where(condition, 1.5, 2).tolist() == [1.5, 2.0]
    out = cd.empty(2)
    assert cd.where(condition, 1.0, 0.0, out=out) is out


# -- three operands ---------------------------------------------------------------------------------------------------
def test_lerp_ends_exactly_at_its_ends() -> None:
    """Weight 0 gives the start, weight 1 the end, whatever their sizes; halves are rounded once."""
    start, end = cd.tensor([1e8, -1.0]), cd.tensor([1.0, 1e-8])
    assert start.lerp(end, 0.0).tolist() == start.tolist()
    assert start.lerp(end, 1.0).tolist() == end.tolist()
    assert cd.lerp(start, end, cd.tensor([1.0, 0.0])).tolist() == [1.0, -1.0]
    half = cd.lerp(cd.ones(3).bfloat16(), cd.full((3,), 2.0).bfloat16(), 0.25)
    assert half.dtype is cd.bfloat16
    assert half.tolist() == [1.25] * 3
    with pytest.raises(NotImplementedError, match="\"lerp\" not implemented for 'Long'"):
        cd.lerp(cd.tensor(1), cd.tensor(2), 1)


def test_products_and_quotients_are_added_with_one_rounding_of_halves(rng: np.random.Generator) -> None:
    """``addcmul`` and ``addcdiv`` in float16 are the float32 result rounded."""
    x, a, b = (cd.tensor(rng.uniform(0.5, 2, (4, 5))).half() for _ in range(3))
    for function in (cd.addcmul, cd.addcdiv):
        want = function(x.float(), a.float(), b.float(), value=-0.75).half()
        assert function(x, a, b, value=-0.75).tolist() == want.tolist()
    assert cd.addcmul(cd.tensor([1, 2]), cd.tensor([2]), cd.tensor([3]), value=2).tolist() == [13, 14]


def test_a_factor_beside_integers_and_bools_is_of_their_dtype() -> None:
    """``addcmul`` cuts 1.5 to 1 beside integers, as PyTorch does, and takes any number but 0 as true beside bools."""
    whole = cd.tensor([5, -7], dtype=cd.int32)
    assert cd.addcmul(whole, whole, whole, value=1.5).tolist() == [30, 42]
    assert cd.addcmul(whole, whole, whole, value=-1.5).tolist() == [-20, -56]
    x, a, b = (cd.tensor(v) for v in ([True, False, False], [True, True, False], [True, True, True]))
    for value, want in ((-1, [True, True, False]), (1.5, [True, True, False]), (0, [True, False, False])):
        assert cd.addcmul(x, a, b, value=value).tolist() == want


# -- in place ---------------------------------------------------------------------------------------------------------
def test_a_composite_in_place_is_recorded() -> None:
    """Its operators are seen by autograd, and may save what is overwritten."""
    x = cd.tensor([0.5, 1.0], requires_grad=True)
    y = x * 1
    y.deg2rad_().sum().backward()
    assert x.grad.tolist() == pytest.approx([np.pi / 180] * 2)
    x.grad = None
    y = x * 2
    y.mvlgamma_(1).sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * (x.detach() * 2).digamma()).tolist())


def test_abs_in_place_refuses_complex_tensors() -> None:
    """Its result is real."""
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        cd.tensor([1j]).abs_()


def test_activations_in_place_are_functions() -> None:
    """As in PyTorch's top namespace."""
    for name, rest in (("selu", ()), ("celu", (1.5,)), ("threshold", (0.1, 7.0))):
        x = cd.tensor([-1.0, 0.5])
        want = getattr(cd, name)(x, *rest).tolist()
        assert getattr(cd, name + "_")(x, *rest) is x
        assert x.tolist() == want


def test_integers_take_no_broken_multiples_and_no_quotients() -> None:
    """``alpha`` must be whole for them, and ``addcdiv`` refuses them."""
    x = cd.tensor([1, 2])
    assert cd.add(x, x, alpha=3).tolist() == [4, 8]
    for function in (cd.add, cd.sub, cd.Tensor.add_, cd.Tensor.subtract_):
        with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
            function(x, x, alpha=1.5)
    with pytest.raises(NotImplementedError, match="\"addcdiv\" not implemented for 'Long'"):
        cd.addcdiv(x, x, x)


def test_bools_have_a_sign_and_a_square() -> None:
    """The sign and the conjugate are bool, in place too; the square is int64."""
    x = cd.tensor([True, False])
    assert x.sign().dtype is cd.bool
    assert x.sgn().tolist() == [True, False]
    assert x.sign_().conj_physical_().tolist() == [True, False]
    assert x.square().dtype is cd.int64


# -- large arrays -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", ["exp", "atanh", "log1p", "tan", "atan2", "hypot"])
def test_large_arrays_give_what_small_ones_give(name: str, dtype: str, rng: np.random.Generator) -> None:
    """They are computed in blocks: contiguous or not, in place, to the last element."""
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


# -- questions --------------------------------------------------------------------------------------------------------
def test_what_does_not_exist_is_answered_with_no() -> None:
    """Nothing here is lazy, sparse, quantised or nested."""
    x = cd.ones(2)
    assert not any((cd.is_conj(x), x.is_neg(), x.is_sparse, x.is_quantized, x.is_nested, x.is_meta, x.is_mkldnn))
    assert cd.resolve_conj(x) is x
    assert cd.resolve_neg(x) is x


def test_questions_are_functions_too() -> None:
    """About sign, inference and device; of anything but a tensor they raise."""
    x = cd.tensor([1, 2], dtype=cd.uint8)
    assert not cd.is_signed(x)
    assert cd.is_signed(x.float())
    assert not cd.is_inference(x)
    assert cd.get_device(x) == x.get_device()
    for name in ("is_signed", "is_inference", "is_conj", "is_neg", "get_device"):
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'input' \(position 1\) must be Tensor, not int"):
            getattr(cd, name)(3)


def test_everything_has_a_type_name() -> None:
    """A tensor's says its dtype."""
    assert cd.typename(cd.ones(1)) == "candelabra.FloatTensor"
    assert cd.typename(3) == "int"
    assert cd.typename(np.zeros(1)) == "numpy.ndarray"


def test_the_angle_of_real_numbers() -> None:
    """0 or pi, at the infinities too, and NaN of NaN."""
    got = cd.angle(cd.tensor([np.inf, -np.inf, 1.0, -2.0, np.nan])).tolist()
    assert got[:4] == pytest.approx([0.0, np.pi, 0.0, np.pi])
    assert np.isnan(got[4])


def test_parts_of_complex_numbers_are_functions() -> None:
    """``real`` and ``imag``, views as the attributes are."""
    z = cd.tensor([1 + 2j])
    cd.real(z).fill_(5)
    assert z.tolist() == [5 + 2j]
    assert cd.imag(z).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        cd.imag(cd.ones(1))


def test_python_functions_at_every_element() -> None:
    """``apply_``, ``map_``, ``map2_``: in place, of tensors that need no gradient."""
    x = cd.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v + 1) is x
    assert x.map_(cd.tensor([10.0, 20.0]), lambda a, b: a * b).tolist() == [[20.0, 60.0], [40.0, 100.0]]
    assert x.map2_(x, x, lambda a, b, c: a + b - c).tolist() == [[20.0, 60.0], [40.0, 100.0]]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        x.requires_grad_().apply_(abs)


def test_python_twos_division_from_the_right() -> None:
    """``__rdiv__`` is there for old programs."""
    got: Any = cd.tensor([2.0, 4.0]).__rdiv__(1)
    assert got.tolist() == [0.5, 0.25]


def test_detach_in_place_is_a_function() -> None:
    """As the method."""
    x = cd.ones(1, requires_grad=True) * 2
    assert cd.detach_(x) is x
    assert not x.requires_grad


def test_positive_is_the_tensor_itself() -> None:
    """``+x`` and ``positive(x)`` copy nothing, with and without a graph, and refuse bools."""
    x = cd.ones(2, requires_grad=True)
    assert cd.positive(x) is x
    assert +x is x
    assert +(y := x * 2) is y
    out = cd.empty(2)
    assert cd.positive(cd.ones(2), out=out) is out
    with pytest.raises(RuntimeError, match=r"The `\+` operator, on a bool tensor is not supported"):
        cd.positive(cd.tensor([True]))
