"""Pooling: values, indices, derivatives of both orders, ceil mode, NaN, errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor

GEOMETRIES = [
    (2, 2, 0, 1, False),
    (3, 2, 1, 1, False),
    (3, 2, 1, 1, True),
    (2, 1, 0, 2, False),
    (2, 3, 1, 1, True),
    (3, 3, 1, 2, True),
]


def windows(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> list[list[int]]:
    """Return the positions of each window inside of the input, along one dim."""
    room = n + 2 * p - d * (k - 1) - 1
    count = (-(-room // s) if ceil else room // s) + 1
    if ceil and (count - 1) * s >= n + p:
        count -= 1
    return [[i for i in range(w * s - p, w * s - p + d * k, d) if 0 <= i < n] for w in range(count)]


def largest(x: np.ndarray, geometry: tuple[int, int, int, int, bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return max pooling by its definition."""
    k, s, p, d, ceil = geometry
    rank = x.ndim - 2
    per_dim = [windows(n, k, s, p, d, ceil) for n in x.shape[2:]]
    values = np.empty((*x.shape[:2], *[len(w) for w in per_dim]))
    indices = np.empty(values.shape, np.int64)
    for place in product(*[range(len(w)) for w in per_dim]):
        cells = list(product(*[per_dim[i][place[i]] for i in range(rank)]))
        flat = np.array([np.ravel_multi_index(c, x.shape[2:]) for c in cells])
        seen = x.reshape(*x.shape[:2], -1)[..., flat]
        best = seen.argmax(-1)
        values[(..., *place)] = np.take_along_axis(seen, best[..., None], -1)[..., 0]
        indices[(..., *place)] = flat[best]
    return values, indices


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pool_returns_maxima_and_indices(rank: int, geometry: tuple[int, int, int, int, bool]) -> None:
    """Values and indices agree with the definition, also for partial windows in ceil mode."""
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[rank]
    k, s, p, d, ceil = geometry
    x = normal(2, 2, *[8, 7, 6][:rank])
    values, indices = function(tensor(x), k, s, p, d, ceil, True)
    expected, places = largest(x, geometry)
    np.testing.assert_array_equal(array(values), expected)
    np.testing.assert_array_equal(array(indices), places)
    np.testing.assert_array_equal(array(function(tensor(x), k, s, p, d, ceil)), expected)


@pytest.mark.parametrize("geometry", GEOMETRIES[:4])
def test_max_pool_has_both_derivatives(geometry: tuple[int, int, int, int, bool]) -> None:
    """The gradient goes to the index of the maximum and adds up if windows overlap."""
    check_gradients(lambda x: F.max_pool2d(x, *geometry), normal(2, 2, 7, 6))


def test_max_pool_of_equal_values_takes_the_first() -> None:
    """The index is that of the first of equal values, also if all are -inf like the padding."""
    _, indices = F.max_pool2d(tensor(np.zeros((1, 1, 4, 4))), 2, return_indices=True)
    np.testing.assert_array_equal(array(indices)[0, 0], [[0, 2], [8, 10]])
    values, indices = F.max_pool2d(tensor(np.full((1, 1, 4, 4), -np.inf)), 3, 2, 1, return_indices=True)
    np.testing.assert_array_equal(array(indices)[0, 0], [[0, 1], [4, 5]])
    assert np.isneginf(array(values)).all()


def test_max_pool_propagates_nan() -> None:
    """A window that contains NaN gives NaN and its index."""
    x = normal(1, 1, 4, 4)
    x[0, 0, 1, 2] = np.nan
    values, indices = F.max_pool2d(tensor(x), 2, return_indices=True)
    assert np.isnan(array(values)[0, 0, 0, 1])
    assert array(indices)[0, 0, 0, 1] == 6
    assert np.isnan(array(F.max_pool2d(tensor(x), 2))).sum() == 1


def test_max_pool_of_integers_and_without_a_batch() -> None:
    """Integers are accepted; (C, H, W) needs no batch dim; an empty batch gives an empty result."""
    x = np.arange(2 * 36).reshape(2, 6, 6)
    np.testing.assert_array_equal(
        array(F.max_pool2d(tensor(x), 2, padding=1)), largest(x[None], (2, 2, 1, 1, False))[0][0]
    )
    assert F.max_pool2d(tensor(np.zeros((0, 2, 6, 6))), 2).shape == (0, 2, 3, 3)


def average(x: np.ndarray, geometry: Any, include: bool, divisor: int | None) -> np.ndarray:
    """Return average pooling by its definition."""
    k, s, p, _, ceil = geometry
    inside = [windows(n, k, s, p, 1, ceil) for n in x.shape[2:]]
    out = np.empty((*x.shape[:2], *[len(w) for w in inside]))
    for place in product(*[range(len(w)) for w in inside]):
        seen = x[(..., *np.ix_(*[inside[i][place[i]] for i in range(len(inside))]))]
        size = 1
        for i, n in zip(place, x.shape[2:], strict=True):
            size *= min(i * s - p + k, n + p) - (i * s - p)
        count = divisor or (size if include else seen[0, 0].size)
        out[(..., *place)] = seen.reshape(*x.shape[:2], -1).sum(-1) / count
    return out


@pytest.mark.parametrize("geometry", [g for g in GEOMETRIES if g[3] == 1])
@pytest.mark.parametrize(("include", "divisor"), [(True, None), (False, None), (True, 5)])
def test_avg_pool_is_the_mean_of_each_window(geometry: Any, include: bool, divisor: int | None) -> None:
    """Padding counts or not, elements beyond it never count, and a given divisor replaces the count."""
    k, s, p, _, ceil = geometry
    x = normal(2, 3, 8, 7)
    out = F.avg_pool2d(tensor(x), k, s, p, ceil, include, divisor)
    np.testing.assert_allclose(array(out), average(x, geometry, include, divisor), rtol=1e-10)
    check_gradients(lambda x: F.avg_pool2d(x, k, s, p, ceil, include, divisor), x)


def test_avg_pool_of_other_ranks() -> None:
    """avg_pool1d and avg_pool3d follow the same definition."""
    x, y = normal(2, 3, 9), normal(2, 2, 5, 4, 6)
    np.testing.assert_allclose(array(F.avg_pool1d(tensor(x), 3, 2, 1)), average(x, (3, 2, 1, 1, False), True, None))
    np.testing.assert_allclose(array(F.avg_pool3d(tensor(y), 2)), average(y, (2, 2, 0, 1, False), True, None))


def test_avg_pool_of_integers_rounds_towards_zero() -> None:
    """The mean of integers is truncated, like a division in C."""
    x = tensor(np.array([[0, -1, -2, -3, 4, 5, -5, 0]]))
    assert F.avg_pool1d(x, 2).tolist() == [[0, -2, 4, -2]]
    assert F.avg_pool2d(x.reshape((1, 2, 4)), 2, divisor_override=3).tolist() == [[[2, -3]]]


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16])
def test_max_pool_of_half_types(dtype: cd.dtype) -> None:
    """Values, indices and gradients of half types are correct, also with NaN, padding and overlapping windows."""
    x = tensor(normal(1, 2, 6, 6)).to(dtype)
    values, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert values.dtype is dtype
    expected, places = F.max_pool2d(x.double(), 3, 2, 1, return_indices=True)
    assert values.double().tolist() == expected.tolist()
    assert indices.tolist() == places.tolist()
    assert F.max_pool2d(x, 3, 2, 1).tolist() == values.tolist()
    x.requires_grad_()
    (g,) = grad(F.max_pool2d(x, 3, 1).sum(), [x])
    wide = x.detach().double().requires_grad_()
    assert g.dtype is dtype
    assert g.tolist() == grad(F.max_pool2d(wide, 3, 1).sum(), [wide])[0].tolist()
    assert F.max_pool1d(cd.tensor([[1.0, float("nan"), 0.0]], dtype=dtype), 2, 1).isnan().tolist() == [[True, True]]


@pytest.mark.parametrize("size", [1, 2, 3, (5, 4), (None, 2)])
def test_adaptive_avg_pool_covers_the_input(size: Any) -> None:
    """Window i is from floor(i * n / m) to ceil((i + 1) * n / m)."""
    x = normal(2, 3, 7, 6)
    sizes = size if isinstance(size, tuple) else (size, size)
    m = [n if w is None else w for w, n in zip(sizes, x.shape[2:], strict=True)]
    expected = np.empty((2, 3, *m))
    for i, j in product(*map(range, m)):
        rows = slice(i * 7 // m[0], -(-(i + 1) * 7 // m[0]))
        columns = slice(j * 6 // m[1], -(-(j + 1) * 6 // m[1]))
        expected[..., i, j] = x[..., rows, columns].mean((-1, -2))
    np.testing.assert_allclose(array(F.adaptive_avg_pool2d(tensor(x), size)), expected, rtol=1e-10)
    check_gradients(lambda x: F.adaptive_avg_pool2d(x, size), x)


def test_adaptive_avg_pool_of_other_ranks() -> None:
    """Inputs have one or three spatial dims, with and without a batch dim."""
    assert F.adaptive_avg_pool1d(tensor(normal(2, 7)), 3).shape == (2, 3)
    assert F.adaptive_avg_pool3d(tensor(normal(1, 2, 4, 4, 4)), (2, 1, 4)).shape == (1, 2, 2, 1, 4)


def test_scattered_gradients_can_be_differentiated_again() -> None:
    """The second derivative of overlapping windows gathers the elements that the first one scattered."""
    x = tensor(normal(1, 1, 5, 5), True)
    out = F.max_pool2d(x, 3, 1)
    cotangent = tensor(normal(*out.shape), True)
    (g,) = grad(out, [x], cotangent, create_graph=True)
    (back,) = grad((g * g).sum(), [cotangent])
    assert back.shape == out.shape


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_unpool_returns_values_to_their_positions(rank: int) -> None:
    """Other elements are 0; the size may be given; derivatives are exact; half types are accepted."""
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    back = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[rank - 1]
    x = normal(2, 3, *[5] * rank)
    values, indices = pool(tensor(x), 2, return_indices=True)
    out = array(back(values, indices, 2, output_size=x.shape))
    assert out.shape == x.shape
    assert (out[out != 0] == x[out != 0]).all()
    assert (out != 0).sum() == values.numel()
    assert back(values[0], indices[0], 2, output_size=[5] * rank).shape == (3, *[5] * rank)
    assert back(values, cd.zeros_like(indices), 2).shape == (2, 3, *[4] * rank)
    check_gradients(lambda v: back(v, indices, 2, output_size=x.shape), array(values))
    assert back(values.half(), indices, 2, output_size=x.shape).dtype is cd.float16


@pytest.mark.parametrize("planes", [1, 70])
def test_the_last_of_equal_indices_stays(planes: int) -> None:
    """For many planes, and for one, which has another form on processors."""
    values, indices = normal(planes, 1000), np.abs(normal(planes, 1000) * 500).astype(int) % 1500
    want = np.zeros((planes, 2000))
    for plane in range(planes):
        for place, value in zip(indices[plane], values[plane], strict=True):
            want[plane, place] = value
    np.testing.assert_array_equal(array(F.max_unpool1d(tensor(values), cd.tensor(indices), 2)), want)


UNPOOL_ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"input": cd.ones(2, 2)},
        RuntimeError,
        "max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with 2 dim",
    ),
    ({"indices": cd.zeros(1, 2, 2, dtype=cd.int32)}, RuntimeError, "should be type int64 but got: Int"),
    ({"indices": cd.zeros(1, 1, 2, dtype=cd.int64)}, RuntimeError, "Expected shape of indices to be same as that of"),
    (
        {"indices": cd.full((1, 2, 2), 30)},
        RuntimeError,
        r"Found an invalid max index: 30 \(output volumes are of size 4x4",
    ),
    ({"output_size": (9, 9)}, ValueError, r"invalid output_size .* \(dim 0 must be between 2 and 6"),
    ({"output_size": (5,)}, ValueError, "containing 2 or 4 elements, but it has a length of '1'"),
    ({"kernel_size": (2, 2, 2)}, RuntimeError, "kernel_size, stride and padding must be one or 2 ints"),
]


@pytest.mark.parametrize("case", range(len(UNPOOL_ERRORS)))
def test_max_unpool_refuses_arguments_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's class of error with its text."""
    changed, error, text = UNPOOL_ERRORS[case]
    given: dict[str, Any] = {"input": cd.ones(1, 2, 2), "indices": cd.zeros(1, 2, 2, dtype=cd.int64), "kernel_size": 2}
    with pytest.raises(error, match=text):
        F.max_unpool2d(**{**given, **changed})


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda x: F.max_pool2d(tensor(normal(3, 4)), 2), RuntimeError, "non-empty 3D or 4D .batch mode. tensor"),
    (lambda x: F.max_pool2d(x[:, :0], 2), RuntimeError, "with optional 0 dim batch size for input, but got"),
    (lambda x: F.max_pool2d(x, 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size"),
    (lambda x: F.max_pool2d(x, 2, padding=-1), RuntimeError, "pad must be non-negative, but got pad: -1"),
    (lambda x: F.max_pool2d(x, 0), RuntimeError, r"kernel_size must be greater than zero, but got 0"),
    (lambda x: F.max_pool2d(x, 2, 0), RuntimeError, "stride should not be zero"),
    (lambda x: F.max_pool2d(x, 2, -1), RuntimeError, "stride must be positive"),
    (lambda x: F.max_pool2d(x, 2, 2, dilation=0), RuntimeError, "dilation should be greater than zero"),
    (
        lambda x: F.max_pool2d(x[..., :1, :1], 3),
        RuntimeError,
        "Calculated output size: .4x0x0.. Output size is too small",
    ),
    (
        lambda x: F.max_pool2d(x, (2, 2, 2)),
        RuntimeError,
        "max_pool2d: kernel_size must either be a single int, or a tuple of two ints",
    ),
    (
        lambda x: F.max_pool2d(x, 2, (2, 2, 2)),
        RuntimeError,
        "max_pool2d: stride must either be omitted, a single int, or a tuple of two",
    ),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
    (lambda x: F.adaptive_avg_pool2d(tensor(normal(3, 4)), 2), RuntimeError, "Expected 3D or 4D tensor, but got"),
    (lambda x: F.adaptive_avg_pool2d(tensor(normal(3, 4)), (2, 2)), ValueError, "Input dimension should be at least 3"),
    (lambda x: F.adaptive_avg_pool2d(x, (2, 2, 2)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
    (lambda x: F.adaptive_avg_pool2d(x, -1), RuntimeError, "must be greater than or equal to 0 but received {-1, -1}"),
    (lambda x: F.adaptive_avg_pool2d(x[..., :0], 2), RuntimeError, "to have non-zero size for non-batch dimensions"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_pooling_refuses_arguments_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(2, 4, 8, 8)))


def test_pooling_functions_are_in_the_namespaces_of_torch() -> None:
    """max_pool2d and adaptive_avg_pool1d are functions of candelabra itself."""
    assert cd.max_pool2d is F.max_pool2d
    assert cd.adaptive_avg_pool1d is F.adaptive_avg_pool1d
