"""Concatenation, with ``out=`` and in chunks."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def array(x: Any) -> np.ndarray:
    """Return a tensor's values."""
    return np.asarray(x.detach().numpy())


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


def test_chunks_are_joined_part_by_part() -> None:
    """Each tensor is padded with zeros to a multiple of the number of chunks."""
    assert cd._chunk_cat([cd.ones(5), 2 * cd.ones(3)], 0, 2).tolist() == [[1, 1, 1, 2, 2], [1, 1, 0, 2, 0]]


@pytest.mark.parametrize(
    ("tensors", "dim", "count", "match"),
    [
        ([cd.ones(2)], 0, 0, "expects positive num_chunks"),
        ([], 0, 1, "_chunk_cat expects a non-empty TensorList"),
        ([cd.ones(2, 2), cd.ones(2)], 1, 1, "expects dim < ndim for all input tensors"),
        ([cd.ones(0)], 0, 1, "expects non-empty tensor"),
    ],
)
def test_chunks_that_cannot_be_joined_are_refused(tensors: Any, dim: int, count: int, match: str) -> None:
    """Every tensor needs elements and the dim."""
    with pytest.raises(RuntimeError, match=match):
        cd._chunk_cat(tensors, dim, count)


def test_empty_vectors_are_passed_over_when_joining() -> None:
    """Their dtype takes part in promotion, their shape is ignored, as in PyTorch."""
    joined = cd.cat([cd.empty(0, dtype=cd.float64), cd.ones(2, 3)], 1)
    assert joined.shape == (2, 3)
    assert joined.dtype is cd.float64
    assert cd.cat([cd.empty(0), cd.empty(0)]).shape == (0,)
    assert cd.concat is cd.concatenate


def test_nothing_cannot_be_joined() -> None:
    """An empty list has no dtype."""
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        cd.cat([])


def test_joining_into_out_of_its_own_memory_is_refused() -> None:
    """An overlap of ``out`` and an input is an error; another part of the same memory is accepted."""
    base = ramp(4, 2)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        cd.cat([base[:1], base[1:2]], out=base[1:3])
    assert cd.cat([base[:1], base[1:2]], out=base[2:]).tolist() == [[0, 1], [2, 3]]
    assert base.tolist() == [[0, 1], [2, 3], [0, 1], [2, 3]]


@pytest.mark.parametrize("name", ["stack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "concat"])
def test_joined_tensors_go_into_out(name: str) -> None:
    """``out=`` is resized and returned."""
    parts, out = [ramp(2, 2), ramp(2, 2) + 4], cd.empty(0)
    made = getattr(cd, name)(parts, out=out)
    assert made is out
    reference = {"concat": np.concatenate, "row_stack": np.vstack}.get(name) or getattr(np, name)
    assert (array(out) == reference([array(p) for p in parts])).all()
