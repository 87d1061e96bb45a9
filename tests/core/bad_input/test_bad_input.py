"""Every invalid call raises its error with its text, and changes nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import candelabra as cd
import pytest
from candelabra._keys import state

from tests.core.bad_input import indices_and_devices, overload_sets, shapes, types
from tests.core.bad_input.row import Row

TABLES = {
    "shapes": shapes.ROWS,
    "types": types.ROWS,
    "indices_and_devices": indices_and_devices.ROWS,
    "overload_sets": overload_sets.ROWS,
}
ALL = [pytest.param(row, id=f"{table}-{row.name}") for table, rows in TABLES.items() for row in rows]


@pytest.fixture
def tensors() -> SimpleNamespace:
    """Return the tensors that the calls use."""
    return SimpleNamespace(
        scalar=cd.tensor(2.0),
        v3=cd.tensor([1.0, 2.0, 3.0]),
        v4=cd.arange(4.0),
        m23=cd.arange(6.0).reshape(2, 3).clone(),
        m32=cd.ones(3, 2),
        m43=cd.ones(4, 3),
        mask=cd.tensor([True, False, True]),
        ints=cd.tensor([1, 2, 3]),
        index=cd.tensor([0, 1]),
        complex=cd.tensor([1 + 2j, 3j]),
        leaf=cd.tensor([1.0, 2.0, 3.0], requires_grad=True),
        other_leaf=cd.ones(3, requires_grad=True),
    )


def snapshot(tensors: SimpleNamespace) -> dict[str, Any]:
    """Return values, versions and gradients."""
    return {name: (t.detach().tolist(), t._version, t.requires_grad, t.grad) for name, t in vars(tensors).items()}


@pytest.mark.parametrize("row", ALL)
def test_a_bad_call_says_what_is_wrong_and_changes_nothing(row: Row, tensors: SimpleNamespace) -> None:
    """The error has the class that PyTorch raises and says what was expected; no tensor changes."""
    before, mode = snapshot(tensors), state.bits
    with pytest.raises(row.error, match=row.text):
        row.call(tensors)
    if row.name != "backward-twice":
        assert snapshot(tensors) == before
    assert state.bits == mode


def test_there_are_enough_rows_and_no_name_twice() -> None:
    """There are at least 150 invalid calls, and each has a unique id in its table."""
    assert len(ALL) >= 150
    for rows in TABLES.values():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
