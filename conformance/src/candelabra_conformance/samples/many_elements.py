"""Samples of more elements than 2**16, 2**18, 2**20 and 2**24, and of sums that pass the limits of narrow dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.many_rows import PLAIN, cycle
from candelabra_conformance.samples.registry import sizes
from candelabra_conformance.samples.sample import HERE, Sample, sample

MANY: Final = (1 << 18) + 5
"""Beyond the results of 256 blocks of 1,024, the usual limit of a scan or a compaction in two passes."""
LONG: Final = (1 << 20) + 7
"""Beyond 1,024 blocks of 1,024."""
GRID: Final = (1 << 24) + 3
"""Beyond 65,536 blocks of 256."""
COUNTED: Final = 70_001
"""Beyond 65,535: a sum of 70,001 ones does not fit into 16 bits."""


@sizes("bitwise_not", "clone", dtypes=("uint8",))
def a_grid_of_bytes(t: Maker) -> Iterator[Sample]:
    """Yield more bytes than a grid of 65,535 blocks of 256 threads has."""
    yield sample(np.resize(np.arange(251).astype(t.numpy), GRID), **PLAIN)


@sizes("add", "eq", dtypes=("int32",))
def long_operands(t: Maker) -> Iterator[Sample]:
    """Yield long operands, equal up to the last element."""
    x = cycle(t, LONG)
    y = x.copy()
    y[-1] += 1
    yield sample(x, y, **PLAIN)


@sizes("equal")
def unequal_in_the_last(t: Maker) -> Iterator[Sample]:
    """Yield tensors that differ in the last of many elements."""
    x = cycle(t, LONG)
    y = x.copy()
    y[-1] += 1
    yield sample(x, y, **PLAIN)


@sizes("cast", dtypes=("uint8", "float32"))
def converted(t: Maker) -> Iterator[Sample]:
    """Yield long conversions to a wider and an equally wide dtype."""
    for name in ("int64", "int32"):
        yield sample(cycle(t, LONG), dtype=t.of(name).dtype, note=name, **PLAIN)


# -- sums -------------------------------------------------------------------------------------------------------------
@sizes("sum", dtypes=("bool", "uint8", "int8", "int16"))
def more_than_the_dtype_counts(t: Maker) -> Iterator[Sample]:
    """Yield sums that pass 255, 65,535 and 2**31, of one row and of several."""
    largest = 1 if t.is_bool else int(np.iinfo(t.numpy).max)
    for shape, dims in (((300,), (0,)), ((COUNTED,), (0,)), ((COUNTED, 2), (0,)), ((3, 300), (1,))):
        yield sample(np.full(shape, largest, t.numpy), dims, note=f"{shape}", **PLAIN)


@sizes("count_nonzero", dtypes=("bool",))
def counted_ones(t: Maker) -> Iterator[Sample]:
    """Yield a count beyond 65,535."""
    yield sample(np.ones(COUNTED, t.numpy), 0, **PLAIN)


@sizes("cumsum", dtypes=("int64", "float32"))
def long_scans(t: Maker) -> Iterator[Sample]:
    """Yield scans of more than 2**20 elements, whose sums stay exact for floats."""
    yield sample(cycle(t, LONG), 0, **PLAIN)


@sizes("cumsum", dtypes=("bool", "uint8"))
def counting_scans(t: Maker) -> Iterator[Sample]:
    """Yield scans of ones whose sums pass 255 and 65,535."""
    yield sample(np.ones(COUNTED, t.numpy), 0, **PLAIN)


@sizes("cumprod", dtypes=("float32",))
def long_products(t: Maker) -> Iterator[Sample]:
    """Yield a running product of more than 2**20 signs."""
    yield sample(t.array(np.where(np.arange(LONG) % 3 == 0, -1, 1)), 0, **PLAIN)


@sizes("cummax", "cummin")
def long_extremes(t: Maker) -> Iterator[Sample]:
    """Yield a running extreme that changes up to the end of more than 2**20 elements."""
    slope = np.arange(LONG) // 3
    yield sample(t.array(slope if t.operator == "cummax" else -slope), 0, **PLAIN)


@sizes("amax", "amin", "argmax", "argmin", "any", "all", dtypes=("float32",))
def decided_late(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**20 elements of which the last one determines the result."""
    for last in (0, 1):
        row = np.full(LONG, 1 - last)
        row[-1] = last
        yield sample(t.array(row), 0, note=f"{last} at the end", **PLAIN)


# -- results of many elements -----------------------------------------------------------------------------------------
@sizes("nonzero", dtypes=("bool", "float32"))
def compacted(t: Maker) -> Iterator[Sample]:
    """Yield a compaction with more than 2**18 results, and one with gaps of more than a block."""
    yield sample(np.ones(MANY, t.numpy), note="all", **PLAIN)
    sparse = np.zeros((3, MANY), t.numpy)
    sparse[:, ::4097] = 1
    sparse[2, -1] = 1
    yield sample(sparse, note="gaps", **PLAIN)


@sizes("masked_select")
def selected(t: Maker) -> Iterator[Sample]:
    """Yield a mask that keeps more than 2**18 elements."""
    yield sample(cycle(t, 2 * MANY), np.arange(2 * MANY) % 3 != 1, **PLAIN)


@sizes("sort", "argsort", dtypes=("int64", "float32"))
def sorted_at_length(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 elements, with ties, which keep their order."""
    scattered = (np.arange(MANY) * 7919) % 100_003
    yield sample(t.array(scattered), 0, stable=True, note="ascending", **PLAIN)
    yield sample(t.array(scattered), 0, True, True, note="descending", **PLAIN)


@sizes("unique", dtypes=("int64",))
def distinct_at_length(t: Maker) -> Iterator[Sample]:
    """Yield more than 65,536 distinct elements among more than 2**18."""
    yield sample(t.array((np.arange(MANY) * 7919) % 100_003), return_inverse=True, return_counts=True, **PLAIN)


@sizes("searchsorted", dtypes=("int64",))
def searched_at_length(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 values in a sequence of more than 65,536."""
    yield sample(t.array(np.arange(100_003) * 2), t.array((np.arange(MANY) * 7919) % 200_017), **PLAIN)


@sizes("bincount", dtypes=("int64",))
def counted(t: Maker) -> Iterator[Sample]:
    """Yield a count beyond 65,535, and more than 65,536 counts."""
    yield sample(t.array(np.where(np.arange(MANY) % 2, 3, np.arange(MANY) % COUNTED)), **PLAIN)


@sizes("random_uniform", "random_normal", "random_exponential")
def drawn(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 draws."""
    yield sample((MANY,), 20240229, 41, dtype=t.dtype, device=HERE)


@sizes("random_integers", dtypes=("int64",))
def whole_numbers_drawn(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 draws."""
    yield sample((MANY,), -5, 1000, 20240229, 41, dtype=t.dtype, device=HERE)


@sizes("random_bernoulli")
def decisions_drawn(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 draws."""
    yield sample(0.3, (MANY,), 20240229, 41, device=HERE)


@sizes("random_permutation", dtypes=("int64",))
def permuted(t: Maker) -> Iterator[Sample]:
    """Yield a permutation of more than 2**18 numbers."""
    yield sample(MANY, 20240229, 41, dtype=t.dtype, device=HERE)


@sizes("full", "arange", "eye", "linspace", dtypes=("int64", "float32"))
def created(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**20 elements; those of a range in float32 are the multiples of a power of two."""
    step = 1 if t.is_integer else 0.5
    arguments: dict[str, tuple[Any, ...]] = {
        "full": ((LONG,), 3), "arange": (-7, step, LONG), "eye": (1025, 1027), "linspace": (-5, MANY - 6, MANY),
    }  # fmt: skip
    yield sample(*arguments[t.operator], dtype=t.dtype, device=HERE, **PLAIN)
