"""Errors of containers, of base classes of layers, and of losses."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import nn


class Containers:
    """New containers with two members each, for one call."""

    def __init__(self) -> None:
        self.row = nn.Sequential(nn.ReLU(), nn.Tanh())
        self.list = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.parameters = nn.ParameterList([cd.ones(1), cd.ones(2)])
        self.table = nn.ParameterDict({"a": cd.ones(1), "b": cd.ones(2)})

    def text(self) -> list[str]:
        """Return the representation of all containers."""
        return [repr(member) for member in vars(self).values()]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s.row[2], IndexError, r"index 2 is out of range"),
        (lambda s: s.list[-3], IndexError, r"index -3 is out of range"),
        (lambda s: s.parameters[2], IndexError, r"index 2 is out of range"),
        (
            lambda s: s.row.insert(0, "relu"),
            AssertionError,
            r"module should be of type: <class 'candelabra\.nn\.module",
        ),
        (lambda s: s.row.insert(3, nn.ReLU()), IndexError, r"Index out of range: 3"),
        (lambda s: s.list.extend(3), TypeError, r"ModuleList\.extend should be called with an iterable, but got int"),
        (
            lambda s: s.row + 3,
            ValueError,
            r"supports only objects of Sequential class, but <class 'int'> is",
        ),
        (
            lambda s: s.named.update(3),
            TypeError,
            r"ModuleDict\.update should be called with an iterable of key/value pa",
        ),
        (lambda s: s.named.update([3]), TypeError, r"ModuleDict update sequence element #0 should be Iterable; is int"),
        (
            lambda s: s.named.update([("c", nn.ReLU(), 1)]),
            ValueError,
            r"ModuleDict update sequence element #0 has length 3; 2 is required",
        ),
        (
            lambda s: s.parameters.extend(cd.ones(2)),
            TypeError,
            r"ParameterList\.extend should be called with an iterable, but got Tensor",
        ),
        (lambda s: s.table["c"], KeyError, r"^'c'$"),
        (
            lambda s: s.table.update(3),
            TypeError,
            r"ParametersDict\.update should be called with an iterable of key/valu",
        ),
        (lambda s: s.table.update([["c"]]), ValueError, r"ParameterDict update sequence element #0 has length 1; 2 is"),
    ],
)
def test_misuse_of_containers_raises_an_error_and_changes_nothing(call: Any, error: type[Exception], text: str) -> None:
    """The class and the text of the error are PyTorch's, and the members do not change."""
    given = Containers()
    before = given.text()
    with pytest.raises(error, match=text):
        call(given)
    assert given.text() == before


@pytest.mark.usefixtures("lantern")
def test_targets_on_another_device_are_not_reported_as_wrong_classes() -> None:
    """The error is that of tensors on two devices, and suggests the call of to()."""
    logits = cd.ones(2, 3, device="lantern:0", requires_grad=True)
    with pytest.raises(RuntimeError, match=r"'target' on lantern:1\. Move them: target\.to\('lantern:0'\)"):
        F.cross_entropy(logits, cd.tensor([0, 1], device="lantern:1"))
    assert logits.grad is None
