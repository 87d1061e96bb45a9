"""Adaptive and fractional max pooling, and the pools that always return indices."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import OPERATORS
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor

PLANE = (np.arange(35.0).reshape(1, 1, 5, 7) * 13) % 29
VOLUME = ((np.arange(180.0) * 37) % 101).reshape(1, 1, 5, 6, 6)


def test_adaptive_maxima_agree_with_torch() -> None:
    """Values and indices are PyTorch 2.13's."""
    values, indices = F.adaptive_max_pool2d(tensor(PLANE), (2, 3), True)
    assert array(values)[0, 0].tolist() == [[26, 27, 28], [25, 26, 28]]
    assert array(indices)[0, 0].tolist() == [[2, 11, 20], [22, 31, 20]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_maxima_cover_the_input(rank: int) -> None:
    """Sizes that divide the input, that do not, and None give the maxima by definition, with indices of them."""
    x = normal(2, 2, *[7, 4, 6][:rank])
    for size in (3, 2, 7, *((None, 1),) * (rank == 2)):
        values, indices = getattr(F, f"adaptive_max_pool{rank}d")(tensor(x), size, return_indices=True)
        flat = x.reshape(2, 2, -1)
        found = np.take_along_axis(flat, array(indices).reshape(2, 2, -1), -1).reshape(values.shape)
        np.testing.assert_array_equal(found, array(values))
        expected = x
        for dim, count in enumerate(values.shape[2:], 2):
            n = expected.shape[dim]
            windows = [range(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]
            expected = np.stack([expected.take(list(w), dim).max(dim) for w in windows], dim)
        np.testing.assert_array_equal(array(values), expected)


def test_the_last_nan_and_the_first_of_equal_values_are_selected() -> None:
    """Indices of NaN and of equal values are PyTorch's."""
    x = np.ones((1, 6))
    x[0, 3] = x[0, 4] = np.nan
    values, indices = cd.adaptive_max_pool1d(tensor(x), 2)
    assert np.isnan(array(values)[0, 1])
    assert array(indices).tolist() == [[0, 4]]


def test_fractional_maxima_of_images_agree_with_torch() -> None:
    """Given positions give PyTorch 2.13's values and indices."""
    samples = tensor(np.array([[[0.3, 0.8]]]))
    values, indices = F.fractional_max_pool2d_with_indices(tensor(PLANE), 2, (3, 4), _random_samples=samples)
    assert array(values)[0, 0].tolist() == [[17, 26, 27, 24], [21, 18, 27, 28], [25, 26, 26, 23]]
    assert array(indices)[0, 0].tolist() == [[8, 2, 11, 13], [15, 17, 11, 20], [22, 31, 31, 33]]


def test_fractional_maxima_of_volumes_agree_with_torch() -> None:
    """Given positions give PyTorch 2.13's values and indices."""
    samples = tensor(np.array([[[0.3, 0.8, 0.1]]]))
    values, indices = F.fractional_max_pool3d(tensor(VOLUME), 2, (3, 2, 4), None, True, samples)
    assert array(values)[0, 0, :, 0].tolist() == [[76, 94, 94, 86], [95, 95, 93, 86], [96, 94, 87, 79]]
    assert array(indices)[0, 0, :, 1].tolist() == [[30, 68, 68, 35], [60, 68, 68, 106], [139, 139, 177, 136]]


def test_fractional_positions_are_drawn_by_the_default_generator() -> None:
    """The same seed gives the same windows; each channel has its own."""
    x = tensor(normal(2, 3, 11, 13))
    cd.manual_seed(3)
    first = F.fractional_max_pool2d(x, 2, output_ratio=0.6)
    cd.manual_seed(3)
    again, indices = F.fractional_max_pool2d(x, 2, output_ratio=(0.6, 0.6), return_indices=True)
    assert first.shape == (2, 3, 6, 7)
    np.testing.assert_array_equal(array(first), array(again))
    assert array(indices).min() >= 0
    assert array(indices).max() < 143


@pytest.mark.parametrize("shape", [(1, 2, 5, 6), (2, 5, 6)])
def test_both_derivatives(shape: tuple[int, ...]) -> None:
    """Gradients of adaptive and fractional pools go to the maxima."""
    samples = tensor(np.random.default_rng(7).uniform(size=(1, 2, 2)))
    check_gradients(lambda x: F.adaptive_max_pool2d(x * x, (3, 4)), normal(*shape))
    check_gradients(lambda x: F.fractional_max_pool2d(x * x, 2, 3, _random_samples=samples), normal(*shape))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools_with_indices_return_pairs(rank: int) -> None:
    """max_pool*d_with_indices is max_pool*d with indices, whatever the flag says."""
    x = tensor(normal(2, 3, *[6] * rank))
    expected = getattr(F, f"max_pool{rank}d")(x, 2, return_indices=True)
    found = getattr(F, f"max_pool{rank}d_with_indices")(x, 2, return_indices=False)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array(a), array(b))
    assert cd.max_pool1d_with_indices is F.max_pool1d_with_indices


def test_empty_batches_and_empty_results() -> None:
    """A batch of 0 and a size of 0 give empty results."""
    assert F.adaptive_max_pool2d(cd.ones(0, 2, 4, 4), 3).shape == (0, 2, 3, 3)
    assert F.adaptive_max_pool1d(cd.ones(2, 4), 0).shape == (2, 0)
    assert F.fractional_max_pool2d(cd.ones(0, 2, 4, 4), 2, 2).shape == (0, 2, 2, 2)


def _fractional(*args: Any, **options: Any) -> Any:
    return lambda x: F.fractional_max_pool2d(x, *args, **options)


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: F.adaptive_max_pool1d(x, 2), RuntimeError, "Expected 2 to 3 dimensions, but got 4-dimensional tensor"),
    (lambda x: F.adaptive_max_pool2d(x[0, 0], 2), RuntimeError, "Expected 3D or 4D tensor, but got"),
    (lambda x: F.adaptive_max_pool2d(x[0, 0], (2, 2)), ValueError, "Input dimension should be at least 3"),
    (lambda x: F.adaptive_max_pool1d(x[0], (2, 2)), RuntimeError, "should contain one int .got 2."),
    (lambda x: F.adaptive_max_pool1d(x[0], None), TypeError, "must be int or tuple of ints, not NoneType"),
    (lambda x: F.adaptive_max_pool2d(x, (2,)), RuntimeError, "output_size.size.. must be 2"),
    (lambda x: F.adaptive_max_pool2d(x, 2.5), TypeError, "'output_size' must be ints or None, not 2.5"),
    (lambda x: F.adaptive_max_pool2d(x, -1), RuntimeError, "Trying to create tensor with negative dimension -1"),
    (lambda x: F.adaptive_max_pool2d(x[:, :, :0], 2), RuntimeError, "with dimension 2 being empty"),
    (lambda x: F.adaptive_max_pool2d(x.long(), 2), NotImplementedError, "not implemented for 'Long'"),
    (lambda x: F.adaptive_avg_pool1d(x[0], (2, 2)), RuntimeError, "should contain one int .got 2."),
    (lambda x: F.adaptive_avg_pool2d(x.long(), 2), NotImplementedError, "not implemented for 'Long'"),
    (_fractional(2), ValueError, "requires specifying either an output_size or an output_ratio"),
    (_fractional(2, output_ratio=(0.5,) * 3), ValueError, "requires output_ratio to either be a single Int or tuple"),
    (_fractional((2, 2, 2), 3), RuntimeError, "kernel_size must either be a single Int or tuple of Ints"),
    (_fractional(2, (3, 3, 3)), RuntimeError, "output_size must either be a single Int or tuple of Ints"),
    (_fractional(2, 6), RuntimeError, "pool height 2 too large relative to input height 6"),
    (_fractional(0, 3), RuntimeError, "pool height must be positive, not 0"),
    (_fractional(2, -3), RuntimeError, "output height must not be negative, but it is -3"),
    (lambda x: F.fractional_max_pool3d(x, 2, 3), RuntimeError, "pool time 2 too large relative to input time 4"),
    (lambda x: F.fractional_max_pool2d(x[0, 0], 2, 3), RuntimeError, "Expected 3D or 4D tensor, but got"),
    (lambda x: F.fractional_max_pool2d(x[:, :0], 2, 3), RuntimeError, "with dimension 1 being empty"),
    (lambda x: F.fractional_max_pool2d(x.long(), 2, 3), NotImplementedError, "not implemented for 'Long'"),
    (_fractional(2, 3, _random_samples=cd.ones(2, 4, 2).double()), RuntimeError, "to have the same dtype as input"),
    (_fractional(2, 3, _random_samples=cd.ones(2, 4)), RuntimeError, "to have 3 dimensions, got 2"),
    (_fractional(2, 3, _random_samples=cd.ones(1, 4, 2)), RuntimeError, "no less then input batch size"),
    (_fractional(2, 3, _random_samples=cd.ones(2, 3, 2)), RuntimeError, "equals to input channel size"),
    (_fractional(2, 3, _random_samples=cd.ones(2, 4, 3)), RuntimeError, "equals to 2; got 3."),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_pools_refuse_arguments_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call(cd.ones(2, 4, 6, 6))


@pytest.mark.parametrize("start", [-1, 4])
def test_windows_outside_of_the_input_are_refused(start: int) -> None:
    """A kernel reads no element outside of the input."""
    starts = cd.tensor([[[0, start, 1]]])
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        OPERATORS["placed_max_pool"](cd.ones(1, 1, 5), starts, (2,), (3,))


@pytest.mark.parametrize(("sizes", "output"), [((30, 41), (9, 1)), ((30, 41), (29, 20)), ((9, 5, 7), (3, 4, 2))])
def test_windows_start_at_steps_that_are_rounded_down(sizes: tuple[int, ...], output: tuple[int, ...]) -> None:
    """The starts of many planes are those of the definition, in the dtype of the numbers; the last window ends with
    the input.
    """
    rank = len(sizes)
    u = np.abs(np.sin(normal(70, 60, rank))).astype(np.float32)
    window = (2,) * rank
    found = array(OPERATORS["window_starts"](cd.tensor(u), sizes, window, output))
    want = []
    for dim, (size, count) in enumerate(zip(sizes, output, strict=True)):
        number = u[:, :, rank - 1 - dim if rank == 2 else dim, None]
        step = np.float32((size - 2) / max(count - 1, 1))
        places = np.arange(count - 1, dtype=np.float32)
        want += [((places + number) * step).astype(int) - (number * step).astype(int)]
        want += [np.full((70, 60, 1), size - 2)]
    np.testing.assert_array_equal(found, np.concatenate(want, -1))


@pytest.mark.parametrize("output", [1, 2, (1, 3)])
def test_large_windows_agree_with_the_definition(output: Any) -> None:
    """Windows of many elements have another form on processors: the same maxima, indices and NaN."""
    x = normal(2, 3, 24, 18)
    x[0, 0, 2, 3] = x[0, 0, 3, 1] = np.nan
    x[1, 1] = 1.0
    values, indices = F.adaptive_max_pool2d(tensor(x), output, True)
    counts = (output, output) if isinstance(output, int) else output
    rows = x.reshape(2, 3, counts[0], 24 // counts[0], counts[1], 18 // counts[1]).transpose(0, 1, 2, 4, 3, 5)
    rows = rows.reshape(*rows.shape[:4], -1)
    np.testing.assert_array_equal(array(values), rows.max(-1))
    assert array(indices)[0, 0, 0, 0] == 3 * 18 + 1
    assert array(indices)[1, 1, 0, 0] == 0
    found = np.take_along_axis(x.reshape(2, 3, -1), array(indices).reshape(2, 3, -1), -1)
    np.testing.assert_array_equal(found.reshape(values.shape), array(values))
    np.testing.assert_array_equal(array(F.max_pool2d(tensor(x), (24, 18))), x.max((2, 3), keepdims=True))
