"""References of adaptive and fractional max pooling, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references.draws import drawn
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]


def selected(values: Array, indices: Array) -> tuple[Any, Any]:
    """Return the largest of the last dim and its index: the first of equal ones, or the last NaN."""
    missing = np.isnan(values.astype(np.float64))
    best = np.where(missing, np.inf, values.astype(np.float64)).argmax(-1)
    last = values.shape[-1] - 1 - missing[..., ::-1].argmax(-1)
    best = np.where(missing.any(-1), last, best)[..., None]
    indices = np.broadcast_to(indices, values.shape)
    return np.take_along_axis(values, best, -1)[..., 0], np.take_along_axis(indices, best, -1)[..., 0]


def maxima(x: Array, windows: Sequence[Sequence[range]]) -> tuple[Array, Array]:
    """Return maxima and flat indices of windows, given as ranges per window and dim."""
    rank = len(windows)
    sizes = x.shape[x.ndim - rank :]
    planes = x.reshape(*x.shape[: x.ndim - rank], int(np.prod(sizes)))
    shape = (*planes.shape[:-1], *[len(w) for w in windows])
    values, found = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    for place in np.ndindex(*shape[planes.ndim - 1 :]):
        cells = list(product(*[windows[dim][place[dim]] for dim in range(rank)]))
        flat = np.array([np.ravel_multi_index(cell, sizes) for cell in cells])
        values[(..., *place)], found[(..., *place)] = selected(planes[..., flat], flat)
    return values, found


@reference("adaptive_max_pool")
def adaptive_max_pool(x: Array, output: Any) -> Any:
    """Take the floor of each start and the ceiling of each end."""
    sizes = x.shape[x.ndim - len(output) :]
    each = zip(sizes, output, strict=True)
    return maxima(x, [[range(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in each])


@reference("placed_max_pool")
def placed_max_pool(x: Array, starts: Array, window: Any, output: Any) -> Any:
    """Read the windows plane by plane."""
    shape, ends = (*x.shape[:2], *output), np.cumsum(output)[:-1]
    values, found = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    for place in np.ndindex(*x.shape[:2]):
        each = zip(np.split(starts[place], ends), window, strict=True)
        values[place], found[place] = maxima(x[place], [[range(s, s + k) for s in along] for along, k in each])
    return values, found


def starts_along(size: int, window: int, count: int, number: Any) -> list[int]:
    """Return where ``count`` windows along a dim start: a common step after a number, rounded down; the last at the
    end.
    """
    step = (size - window) / (count - 1) if count > 1 else 0.0
    return [int((i + number) * step) - int(number * step) for i in range(count - 1)] + [size - window] * (count > 0)


@reference("window_starts")
def window_starts(samples: Array, sizes: Any, window: Any, output: Any) -> Array:
    """Compute the starts plane by plane."""
    found = np.empty((*samples.shape[:2], sum(output)), np.int64)
    for place in np.ndindex(*samples.shape[:2]):
        numbers = samples[place][::-1] if len(sizes) == 2 else samples[place]
        each = zip(sizes, window, output, numbers, strict=True)
        found[place] = [start for along in each for start in starts_along(*along)]
    return found


def adaptive(rank: int, indices: bool | None) -> Callable[..., Any]:
    """Return a public function; ``indices`` None: as the flag says."""

    def pooled(x: Array, size: Any, return_indices: bool = False) -> Any:
        given = (size,) * rank if isinstance(size, int) else size
        sizes = x.shape[x.ndim - rank :]
        found = adaptive_max_pool(x, [n if m is None else m for n, m in zip(sizes, given, strict=True)])
        return found if (return_indices if indices is None else indices) else found[0]

    return pooled


def fractional(rank: int, indices: bool | None) -> Callable[..., Any]:
    """Return a public function, which pools plane by plane."""

    def pooled(
        x: Array, kernel: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Array | None = None,
    ) -> Any:  # fmt: skip
        sizes = x.shape[x.ndim - rank :]
        window = (kernel,) * rank if isinstance(kernel, int) else kernel
        output = [int(n * output_ratio) for n in sizes] if output_size is None else output_size
        output = (output,) * rank if isinstance(output, int) else output
        planes = x.reshape(-1, *sizes)
        if _random_samples is None:
            batch = x.shape[0] if x.ndim == rank + 2 else 1
            shape = (batch, len(planes) // batch, rank)
            _random_samples = np.asarray(drawn("uniform", shape, dtype_of(x), None))
        numbers = _random_samples.reshape(-1, rank)
        if rank == 2:
            numbers = numbers[:, ::-1]
        results = []
        for plane, number in zip(planes, numbers, strict=True):
            windows = []
            for n, k, m, u in zip(sizes, window, output, number, strict=True):
                windows.append([range(s, s + k) for s in starts_along(n, k, m, u)])
            results.append(maxima(plane, windows))
        shape = (*x.shape[: x.ndim - rank], *output)
        found = tuple(np.stack(part).reshape(shape) for part in zip(*results, strict=True))
        return found if (return_indices if indices is None else indices) else found[0]

    return pooled


def dtype_of(x: Array) -> dtype:
    """Return the dtype of which an array is a sample."""
    return device_dtype(x.dtype)


references({"adaptive_max_pool1d": adaptive(1, True)})
references({f"nn.functional.adaptive_max_pool{rank}d": adaptive(rank, None) for rank in (1, 2, 3)})
references({f"nn.functional.adaptive_max_pool{rank}d_with_indices": adaptive(rank, True) for rank in (2, 3)})
references({f"nn.functional.fractional_max_pool{rank}d": fractional(rank, None) for rank in (2, 3)}, as_given=True)
references(
    {f"nn.functional.fractional_max_pool{rank}d_with_indices": fractional(rank, True) for rank in (2, 3)},
    as_given=True,
)
