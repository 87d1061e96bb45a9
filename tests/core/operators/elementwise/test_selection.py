"""Selection of elements by a condition."""

from __future__ import annotations

import candelabra as cd


def test_where_takes_two_numbers() -> None:
    """The dtype is the default one of the two numbers; ``out=`` works too."""
    condition = cd.tensor([True, False])
    assert cd.where(condition, 1, 0).dtype is cd.int64
    assert cd.where(condition, 1.5, 2).tolist() == [1.5, 2.0]
    out = cd.empty(2)
    assert cd.where(condition, 1.0, 0.0, out=out) is out
