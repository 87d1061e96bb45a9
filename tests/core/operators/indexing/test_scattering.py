"""Scattered reductions, put, masked_scatter and the arguments of index functions, compared with loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck

REDUCTIONS: dict[str, Any] = {
    "sum": sum, "prod": math.prod, "mean": lambda v: sum(v) / len(v), "amax": max, "amin": min,
}  # fmt: skip


def loop(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> list[Any]:
    """Return the result of ``scatter_reduce``, computed element by element."""
    brought: dict[tuple[int, ...], list[float]] = {}
    for place in itertools.product(*map(range, index.shape)):
        target = list(place)
        target[dim] = int(index[place])
        brought.setdefault(tuple(target), []).append(float(src[place]))
    out = np.array(x, dtype=np.float64)
    for place, values in brought.items():
        out[place] = REDUCTIONS[reduce](values if not include_self else [float(x[place]), *values])
    return out.tolist()


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scattered_values_are_reduced(reduce: str, dim: int, include_self: bool) -> None:
    """Any dim, with and without the original value; the source may be larger than the index."""
    rng = np.random.default_rng(3)
    x, src = rng.normal(size=(4, 5)), rng.normal(size=(4, 6))
    index = rng.integers(0, 4, (3, 5))
    wanted = loop(x, dim % 2, index, src, reduce, include_self)
    arguments = (dim, cd.from_numpy(index), cd.from_numpy(src), reduce)
    made = cd.scatter_reduce(cd.from_numpy(x), *arguments, include_self=include_self)
    assert np.allclose(made.numpy(), wanted)
    y = cd.from_numpy(x.copy())
    assert y.scatter_reduce_(*arguments, include_self=include_self) is y
    assert np.allclose(y.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_every_real_dtype_is_reduced(reduce: str, dtype: str) -> None:
    """The result has the same dtype; integer means are rounded down."""
    d = getattr(cd, dtype)
    x, index, src = cd.ones(3, dtype=d), cd.tensor([0, 0, 2]), cd.tensor([2, 3, 4]).to(d)
    wanted = {"sum": [6, 1, 5], "prod": [6, 1, 4], "mean": [2, 1, 2.5], "amax": [3, 1, 4], "amin": [1, 1, 1]}[reduce]
    made = x.scatter_reduce(0, index, src, reduce)
    assert made.dtype is d
    assert made.tolist() == [math.floor(v) if d.category == 1 else v for v in wanted]


def test_means_of_negative_integers_round_down() -> None:
    """They are rounded towards minus infinity, not towards zero."""
    made = cd.zeros(1, dtype=cd.int32).scatter_reduce(0, cd.tensor([0]), cd.tensor([-3], dtype=cd.int32), "mean")
    assert made.tolist() == [-2]


def test_bools_and_complex_numbers_are_reduced_where_that_means_something() -> None:
    """Products of bools are conjunctions, and bools have extremes; complex numbers have sums, products and means."""
    index = cd.tensor([0, 0])
    flags = cd.tensor([True, False])
    assert cd.ones(2, dtype=cd.bool).scatter_reduce(0, index, flags, "prod").tolist() == [False, True]
    assert cd.zeros(2, dtype=cd.bool).scatter_reduce(0, index, flags, "amax").tolist() == [True, False]
    assert cd.ones(2, dtype=cd.bool).scatter_reduce(0, index, ~flags, "amin", include_self=False).tolist() == [
        False,
        True,
    ]
    z = cd.tensor([1j, 2j])
    assert cd.ones(1, dtype=cd.complex64).scatter_reduce(0, index, z, "prod").tolist() == [-2]
    mean = cd.ones(1, dtype=cd.complex128).scatter_reduce(0, index, z.to(cd.complex128), "mean")
    assert np.allclose(mean.tolist(), [(1 + 3j) / 3])
    with pytest.raises(NotImplementedError, match="reduce_amax\" not implemented for 'ComplexFloat'"):
        cd.ones(1, dtype=cd.complex64).scatter_reduce(0, index, z, "amax")
    with pytest.raises(NotImplementedError, match="reduce_mean\" not implemented for 'Bool'"):
        cd.ones(1, dtype=cd.bool).scatter_reduce(0, index, flags, "mean")


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_nan_and_infinity_propagate(reduce: str, include_self: bool) -> None:
    """NaN propagates, infinities are ordinary values, and empty indices change nothing."""
    x = cd.zeros(3)
    made = x.scatter_reduce(
        0, cd.tensor([0, 0, 1]), cd.tensor([1, math.nan, -math.inf]), reduce, include_self=include_self
    )
    assert math.isnan(made[0].item())
    assert made[1].item() == (-math.inf if reduce == "amin" or not include_self else 0)
    assert x.scatter_reduce(0, cd.empty(0, dtype=cd.int64), cd.empty(0), reduce).tolist() == [0, 0, 0]
    assert cd.tensor(1.0).scatter_reduce(0, cd.tensor(0), cd.tensor(5.0), "amax").item() == 5


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_reductions_have_derivatives_of_two_orders(reduce: str, include_self: bool) -> None:
    """They agree with finite differences, also for repeated indices and for elements without a source."""
    x = cd.tensor([0.5, -1.2, 2.0], dtype=cd.float64, requires_grad=True)
    src = cd.tensor([0.7, 1.9, -0.4], dtype=cd.float64, requires_grad=True)
    index = cd.tensor([0, 0, 2])

    def f(x: Any, src: Any) -> Any:
        return x.scatter_reduce(0, index, src, reduce, include_self=include_self)

    assert gradcheck(f, (x, src))
    assert gradgradcheck(f, (x, src))


def test_zeros_do_not_hide_the_gradient_of_a_product() -> None:
    """A single zero among the factors, also the original value, gets the product of the others."""
    src = cd.tensor([0.0, 3.0, 5.0], requires_grad=True)
    x = cd.tensor([2.0, 0.0], requires_grad=True)
    x.scatter_reduce(0, cd.tensor([0, 0, 1]), src, "prod").sum().backward()
    assert src.grad.tolist() == [6, 0, 0]
    assert x.grad.tolist() == [0, 5]


def test_equal_extremes_share_the_gradient() -> None:
    """The gradient is shared equally, also with the original value."""
    x, src = cd.tensor([2.0, 1.0], requires_grad=True), cd.tensor([2.0, 2.0, 0.0], requires_grad=True)
    x.scatter_reduce(0, cd.tensor([0, 0, 1]), src, "amax").sum().backward()
    assert np.allclose(x.grad.tolist(), [1 / 3, 1])
    assert np.allclose(src.grad.tolist(), [1 / 3, 1 / 3, 0])


@pytest.mark.parametrize(
    ("src", "reduce", "error", "match"),
    [
        (cd.ones(2), "max", RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got max"),
        (
            cd.ones(2, dtype=cd.float64),
            "sum",
            RuntimeError,
            "to have the same dtype, but got Float and Double",
        ),
        (1.0, "sum", TypeError, r"argument 'src' \(position 4\) must be Tensor, not float"),
        (cd.ones(1), "amax", RuntimeError, r"Expected index \[2\] to be no larger than self \[2\]"),
    ],
)
def test_reductions_that_are_none_are_refused(src: Any, reduce: str, error: Any, match: str) -> None:
    """Unknown names, other dtypes, numbers and small sources are errors."""
    with pytest.raises(error, match=match):
        cd.ones(2).scatter_reduce(0, cd.tensor([0, 1]), src, reduce)


def test_places_outside_are_refused() -> None:
    """Negative and too large indices are errors."""
    for place in (-1, 2):
        with pytest.raises(RuntimeError, match=rf"index {place} is out of bounds for dimension 0 with size 2"):
            cd.ones(2).scatter_reduce(0, cd.tensor([place]), cd.ones(1), "prod")


# -- index_reduce -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [3, 80])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_whole_slices_are_reduced(reduce: str, dim: int, include_self: bool, width: int) -> None:
    """Narrow and wide slices give the same result by two algorithms."""
    rng = np.random.default_rng(4)
    shape, given = ((4, width), (5, width)) if dim == 0 else ((width, 4), (width, 5))
    x, source, index = rng.normal(size=shape), rng.normal(size=given), np.array([3, 0, 3, 1, 3])
    spread = np.broadcast_to(index[:, None] if dim == 0 else index, given)
    wanted = loop(x, dim, spread, source, reduce, include_self)
    made = cd.index_reduce(
        cd.from_numpy(x), dim, cd.from_numpy(index), cd.from_numpy(source), reduce, include_self=include_self
    )
    assert np.allclose(made.numpy(), wanted)
    y = cd.from_numpy(x.copy())
    y.index_reduce_(dim, cd.from_numpy(index), cd.from_numpy(source), reduce, include_self=include_self)
    assert np.allclose(y.numpy(), wanted)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((cd.tensor([0]), cd.ones(1), "sum"), RuntimeError, "one of prod, mean, amax or amin but got sum"),
        (
            (cd.tensor([0.0]), cd.ones(1), "prod"),
            RuntimeError,
            "Expected dtype int64 for index, got candel",
        ),
        (
            (cd.tensor([0]), cd.ones(1, dtype=cd.float64), "prod"),
            RuntimeError,
            "same dtype, but got Float and Double",
        ),
        ((cd.tensor([[0]]), cd.ones(1), "prod"), IndexError, "Index is supposed to be a vector, but got 2 dims"),
        ((cd.tensor([0]), cd.ones(1, 1), "prod"), RuntimeError, "source tensor shape must match self tensor shape"),
        ((cd.tensor([0, 1]), cd.ones(1), "prod"), RuntimeError, r"Number of indices \(2\) should be equal to source"),
        ((cd.tensor([5]), cd.ones(1), "prod"), IndexError, "index out of range in self"),
    ],
)
def test_slices_that_do_not_fit_are_refused(arguments: Any, error: Any, match: str) -> None:
    """The error says what is wrong with the index, the source or the reduction."""
    with pytest.raises(error, match=match):
        cd.ones(2).index_reduce(0, *arguments)


def test_slices_of_bools_are_not_reduced() -> None:
    """They are refused, as in PyTorch."""
    with pytest.raises(NotImplementedError, match="\"index_reduce\" not implemented for 'Bool'"):
        cd.ones(2, dtype=cd.bool).index_reduce(0, cd.tensor([0]), cd.ones(1, dtype=cd.bool), "prod")


# -- put --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("accumulate", [False, True])
def test_elements_are_put_at_flat_places(accumulate: bool) -> None:
    """Indices count as if the tensor were flattened, whatever its strides; negative ones count from the end."""
    x = cd.arange(6.0).reshape(2, 3).t()
    index, source = cd.tensor([[0, -1], [3, 3]]), cd.tensor([[10.0, 20.0], [30.0, 40.0]])
    wanted = x.numpy().copy()
    flat = wanted.reshape(-1)
    for place, value in zip([0, -1, 3, 3], [10, 20, 30, 40]):
        flat[place] = value + (flat[place] if accumulate else 0)
    assert x.put(index, source, accumulate).tolist() == wanted.tolist()
    y = x.clone().t().clone().t()
    assert y.put_(index, source, accumulate) is y
    assert y.tolist() == wanted.tolist()
    assert cd.ones(2).put(cd.empty(0, dtype=cd.int64), cd.empty(0)).tolist() == [1, 1]


def test_what_is_put_carries_gradients() -> None:
    """The source and the elements that were not overwritten have gradients."""
    x, source = cd.ones(3, requires_grad=True), cd.ones(1, requires_grad=True)
    (cd.put(x, cd.tensor([1]), source) * cd.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1, 0, 3]
    assert source.grad.tolist() == [2]


@pytest.mark.parametrize(
    ("x", "index", "source", "error", "match"),
    [
        (cd.ones(2), cd.tensor([0.0]), cd.ones(1), RuntimeError, "Expected dtype int64 for index"),
        (cd.ones(2), cd.tensor([0]), cd.ones(1, dtype=cd.int32), RuntimeError, "same dtype, but got Float and Int"),
        (cd.ones(2), cd.tensor([0]), cd.ones(2), IndexError, r"source\.numel\(\) = 2, index\.numel\(\) = 1"),
        (cd.ones(2), cd.tensor([2]), cd.ones(1), IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (cd.ones(0), cd.tensor([0]), cd.ones(1), IndexError, "index 0 is out of bounds for dimension 0 with size 0"),
    ],
)  # fmt: skip
def test_places_and_sources_that_do_not_fit_are_refused(
    x: Any, index: Any, source: Any, error: Any, match: str
) -> None:
    """Dtypes, counts and bounds are checked."""
    with pytest.raises(error, match=match):
        x.put(index, source)


# -- parts replaced ---------------------------------------------------------------------------------------------------
def test_a_strided_part_is_replaced() -> None:
    """The result is a copy; overwritten elements have no gradient."""
    x, src = cd.zeros(3, 3, requires_grad=True), cd.ones(2, 2, requires_grad=True)
    out = cd.as_strided_scatter(x, src, (2, 2), (1, 4), 1)
    assert out.tolist() == [[0, 1, 1], [0, 0, 1], [1, 0, 0]]
    (out * cd.arange(9.0).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [3, 4, 0], [0, 7, 8]]
    assert src.grad.tolist() == [[1, 5], [2, 6]]
    with pytest.raises(RuntimeError, match=r"src size = \[3\], slice size = \[2\]"):
        cd.as_strided_scatter(cd.ones(4), cd.ones(3), (2,), (1,))


def test_masked_indices_may_point_anywhere() -> None:
    """Elements with a false mask are neither read nor added."""
    x, mask, index = cd.arange(3.0), cd.tensor([True, False]), cd.tensor([1, 99])
    assert cd._unsafe_masked_index(x, mask, [index], -1).tolist() == [1, -1]
    assert cd._unsafe_masked_index_put_accumulate(x, mask, [index], cd.ones(2)).tolist() == [0, 2, 2]


# -- arguments of the other index functions ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x, i: x.index_fill(0, x, 1), RuntimeError, r"index_fill\(\): Expected dtype int64 for index"),
        (lambda x, i: x.index_fill(0, i, 1j), RuntimeError, "cannot be converted to type float without overflow"),
        (lambda x, i: x.index_fill(0, i, cd.ones(1)), RuntimeError, "only supports a 0-dimensional value tensor"),
        (lambda x, i: x.index_copy(0, x, x), RuntimeError, r"index_copy\(\): Expected dtype int64 for index"),
        (lambda x, i: x.index_select(0, x), RuntimeError, r"index_select\(\): Expected dtype int64 for index"),
        (lambda x, i: x.masked_select(i), RuntimeError, "mask expected to be a boolean tensor, but got"),
        (lambda x, i: x.masked_scatter(i, x), RuntimeError, "mask expected to be a boolean tensor, but got"),
        (lambda x, i: x.masked_select((x > 0).byte()), RuntimeError, "a tensor with dtype candelabra.uint8"),
        (lambda x, i: x.masked_scatter((x > 0).byte(), x), RuntimeError, "a tensor with dtype candelabra.uint8"),
        (lambda x, i: x.masked_fill((x > 0).byte(), 0.0), RuntimeError, "a tensor with dtype candelabra.uint8"),
        (lambda x, i: x.masked_fill_((x > 0).byte(), 0.0), RuntimeError, "a tensor with dtype candelabra.uint8"),
        (lambda x, i: cd.ones(1).long().masked_fill(cd.tensor(True), cd.tensor(1j)), RuntimeError, "without overflow"),
        (lambda x, i: x.narrow(0, i, 1), RuntimeError, "start must be an 0-dim integral Tensor"),
        (lambda x, i: x.gather(0, i, out=cd.empty(2, dtype=cd.float64)), RuntimeError, "out tensor to have dtype"),
        (lambda x, i: x.take(i, out=x), RuntimeError, "refer to a single memory location"),
    ],
)  # fmt: skip
def test_arguments_are_refused_in_pytorchs_words(call: Any, error: Any, match: str) -> None:
    """Dtypes of indices, masks, fill values and ``out`` are checked."""
    with pytest.raises(error, match=match):
        call(cd.ones(2), cd.tensor([0, 1]))


def test_filled_slices_share_one_gradient() -> None:
    """A slice with two indices is filled once, and the value gets its gradient once."""
    x, value = cd.ones(3, 2, requires_grad=True), cd.tensor(5.0, requires_grad=True)
    x.index_fill(0, cd.tensor([1, 1]), value).sum().backward()
    assert value.grad.item() == 2
    assert x.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    assert cd.tensor(1.0).index_fill(0, cd.tensor(0), 3).item() == 3


def test_negative_indices_count_back_along_a_dim() -> None:
    """``take_along_dim`` accepts negative indices, which ``gather`` refuses; ``sparse_grad`` is ignored."""
    x = cd.arange(6.0).reshape(2, 3)
    assert x.take_along_dim(cd.tensor([[-1]]), 1).tolist() == [[2], [5]]
    assert x.gather(1, cd.tensor([[2], [0]]), sparse_grad=True).tolist() == [[2], [3]]


def test_what_is_added_to_integers_is_cut_off_first() -> None:
    """``alpha`` is converted to the tensor's dtype."""
    added = cd.zeros(2, dtype=cd.int64).index_add(0, cd.tensor([0, 1, 0]), cd.ones(3, dtype=cd.int64), alpha=2.5)
    assert added.tolist() == [4, 2]


def test_wide_rows_are_added_in_order() -> None:
    """They are added one by one, in float32 for half types."""
    rng = np.random.default_rng(5)
    source, index = rng.normal(size=(300, 70)).astype(np.float32), rng.integers(0, 3, 300)
    wanted = np.zeros((3, 70), np.float32)
    np.add.at(wanted, index, source)
    made = cd.zeros(3, 70).index_add(0, cd.from_numpy(index), cd.from_numpy(source))
    assert (made.numpy() == wanted).all()
    half = cd.zeros(3, 70, dtype=cd.bfloat16).index_add(
        0, cd.zeros(300, dtype=cd.int64), cd.ones(300, 70, dtype=cd.bfloat16)
    )
    assert half[0].tolist() == [300] * 70
