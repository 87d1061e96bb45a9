"""Indices of triangular matrices."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators.creation.matrices import triangle_indices


@pytest.mark.parametrize("offset", [-4, -1, 0, 1, 5])
@pytest.mark.parametrize(("row", "col"), [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0), (700, 90), (2, 40_000)])
def test_triangles_of_indices(row: int, col: int, offset: int) -> None:
    """The indices are in row order and equal NumPy's."""
    for name in ("tril_indices", "triu_indices"):
        made = getattr(cd, name)(row, col, offset)
        assert made.numpy().tolist() == np.array(getattr(np, name)(row, offset, col)).tolist()
        assert made.dtype is cd.int64


def test_triangles_of_other_dtypes_and_sizes_are_refused() -> None:
    """Non-integer dtypes and negative sizes are errors."""
    assert cd.tril_indices(2, 2, dtype=cd.int32).dtype is cd.int32
    with pytest.raises(NotImplementedError, match="\"tril_indices\" not implemented for 'Float'"):
        cd.tril_indices(2, 2, dtype=cd.float32)
    with pytest.raises(RuntimeError, match="col must be non-negative, got-3"):
        cd.triu_indices(2, -3)
    with pytest.raises(RuntimeError, match="row must be non-negative, got-1"):
        cd.tril_indices(-1, 3)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("offset", [-4, -1, 0, 1, 5])
@pytest.mark.parametrize(("row", "col"), [(3, 3), (2, 4), (4, 2), (0, 3), (3, 0)])
def test_the_operator_of_triangles_knows_its_size_and_has_a_body(row: int, col: int, offset: int, upper: bool) -> None:
    """On a device without a kernel the result has the shape of the rule and the kernel's values."""
    arguments = (row, col, offset, upper)
    made = triangle_indices(*arguments, dtype=cd.int64, device=cd.device("cpu"))
    body = triangle_indices.body(*arguments, dtype=cd.int64, device=cd.device("cpu"))
    assert made.tolist() == body.tolist()
    assert tuple(made.shape) == triangle_indices.rule(triangle_indices, arguments)
