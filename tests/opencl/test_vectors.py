"""Vectors of contiguous elements, the form of elementwise kernels for GPUs: offsets, last elements and rare values."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.dtypes import bfloat16, bool_, complex64, complex128, float16, float32, int64, uint8
from candelabra_clike.language import call
from candelabra_clike.templates.elementwise.elementwise import lane_schedule
from candelabra_clike.templates.elementwise.loops import LoopNest, operands

pytestmark = pytest.mark.rounding

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 1023)
TYPES = {"uint8": 16, "float16": 8, "bfloat16": 8, "float32": 4, "int64": 2}
"""The elements of a lane by dtype."""


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_at_any_offset_are_added(lanes: cd.device, dtype: str) -> None:
    """A lane loads a vector where both addresses and that of the result are aligned, and single elements elsewhere."""
    d = getattr(cd, dtype)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, (2, 1100))
    x, y = (cd.tensor(row.tolist(), dtype=d).to(lanes) for row in values)
    for size in SIZES:
        for start, other in ((0, 0), (1, 1), (TYPES[dtype], 2 * TYPES[dtype]), (0, 3), (5, 0), (2, 6)):
            expected = values[0, start : start + size] + values[1, other : other + size]
            found = x[start : start + size] + y[other : other + size]
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("start", [0, 1, 3, 4, 8])
def test_an_array_in_place_keeps_its_neighbours(lanes: cd.device, start: int) -> None:
    """The last lane writes no element beyond the end, and the first none before the start."""
    for size in SIZES:
        x = cd.arange(1100, dtype=cd.float32, device=lanes)
        x[start : start + size].mul_(2.0)
        expected = np.arange(1100)
        expected[start : start + size] *= 2
        assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_arrays_of_different_dtypes_are_compared(lanes: cd.device, size: int) -> None:
    """The result is of bytes, so that a lane stores a shorter vector than it loads."""
    rng = np.random.default_rng(size)
    a, b = rng.integers(0, 3, (2, size))
    x, y = (cd.tensor(v.tolist(), dtype=cd.float32).to(lanes) for v in (a, b))
    assert (x > y).tolist() == (a > b).tolist()
    assert cd.where(x > y, x, y).tolist() == np.maximum(a, b).tolist()


def test_a_rare_value_does_not_change_its_neighbours(lanes: cd.device, device: cd.device) -> None:
    """The elements of a lane with a value below -5 are all computed by the costly expression of gelu."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=1003).astype(np.float32)
    values[[3, 500, 501, 1001, 1002]] = -7.0, -5.5, np.nan, -np.inf, -20.0
    x = cd.tensor(values.tolist())
    for function in (cd.nn.functional.gelu, cd.nn.functional.silu):
        np.testing.assert_array_equal(
            np.array(function(x.to(lanes)).tolist()), np.array(function(x.to(device)).tolist())
        )


def test_invalid_values_beyond_the_end_are_not_reported(lanes: cd.device) -> None:
    """The lane of the last elements reads none that follows them in memory."""
    x = cd.tensor([4, 2, 0], dtype=cd.int64).to(lanes)
    assert (cd.tensor([8, 8], dtype=cd.int64).to(lanes) // x[:2]).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        (cd.tensor([8, 8, 8], dtype=cd.int64).to(lanes) // x).tolist()


@pytest.mark.parametrize(
    ("inputs", "output", "width"),
    [
        ((float32, float32), float32, 4), ((float16,), float16, 8), ((bfloat16, float32), float32, 4),
        ((float32,), bool_, 4), ((bool_,), bool_, 16), ((uint8,), int64, 2), ((complex64,), complex64, 2),
        ((complex128,), complex128, 1),
    ],
)  # fmt: skip
def test_a_lane_loads_sixteen_bytes_of_the_largest_elements(
    inputs: tuple[cd.dtype, ...], output: cd.dtype, width: int
) -> None:
    """Elements of 16 bytes are processed one by one."""
    value = operands(inputs)[0]
    assert LoopNest("any", (value,), inputs, (output,)).per_lane == width


def test_long_functions_are_computed_once_per_lane() -> None:
    """Their time is that of the computation, and a copy of them per element would take long to compile."""
    (element,) = operands((float32,))
    widths = {
        name: LoopNest("any", (call(name, element),), (float32,), (float32,)).per_lane for name in ("exp", "lgamma")
    }
    assert widths == {"exp": 4, "lgamma": 1}


def test_rows_of_vectors_are_read_at_any_offset(lanes: cd.device) -> None:
    """Arrays with other outer strides, and numbers and rows that are broadcast, are processed by vectors, too."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 99, (2, 6, 5, 24)).astype(np.float32)
    x, y = (cd.tensor(v.tolist()).to(lanes) for v in (a, b))
    cases: dict[str, tuple[Any, ...]] = {
        "heads": (x.transpose(0, 1) + 1, a.swapaxes(0, 1) + 1),
        "a bias": (x + y[0, 0], a + b[0, 0]),
        "a column": (x + y[:, :, :1], a + b[:, :, :1]),
        "columns": (x[:, :, 8:16] * y[:, :, :8], a[:, :, 8:16] * b[:, :, :8]),
        "an odd offset": (x[:, :, 3:11] * y[:, :, :8], a[:, :, 3:11] * b[:, :, :8]),
        "an odd size": (x[:, :, 3:10] * y[:, :, :7], a[:, :, 3:10] * b[:, :, :7]),
        "rows": (x[::2, 1:] > y[::2, :4], a[::2, 1:] > b[::2, :4]),
        "columns of a row": (x[0] + y[1, :, :1], a[0] + b[1, :, :1]),
        "transposed": (x.transpose(1, 2) + y.transpose(1, 2), (a + b).swapaxes(1, 2)),
        "a copy of heads": (x.transpose(0, 1).contiguous(), a.swapaxes(0, 1)),
    }
    for name, (found, expected) in cases.items():
        assert found.tolist() == expected.tolist(), name
    x[:, :, 4:12] += y[:, :, :1]
    a[:, :, 4:12] += b[:, :, :1]
    x[1:, :, 5:9].copy_(y[0, 0, 8:12])
    a[1:, :, 5:9] = b[0, 0, 8:12]
    assert x.tolist() == a.tolist()


@pytest.mark.parametrize(
    ("sizes", "rows", "name", "count"),
    [
        ((6, 8), ((8, 1), (16, 1)), "any_2d_11", 12),
        ((6, 8), ((8, 1), (16, 0)), "any_2d_10", 12),
        ((6, 8), ((8, 1), (6, 1)), "any_2d", 48),
        ((6, 8), ((8, 1), (1, 6)), "any_2d", 48),
        ((6, 6), ((8, 1), (12, 1)), "any_2d", 36),
        ((6, 8), ((16, 2), (8, 1)), "any_2d", 48),
    ],
)
def test_a_lane_processes_a_vector_of_a_row_where_rows_start_at_one(
    sizes: tuple[int, ...], rows: tuple[tuple[int, ...], ...], name: str, count: int
) -> None:
    """The size of rows and all strides are multiples of four elements, and along the last dim strides are 0 or 1."""
    nest = LoopNest("any", operands((float32,)), (float32,), (float32,))
    source, items, numbers = lane_schedule(nest, sizes, rows, False)
    assert (source.name, items, numbers[0]) == (name, count, count)
