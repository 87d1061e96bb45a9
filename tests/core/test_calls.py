"""The operators and public names that a public callable's code calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra._namespace.calls import called_by
from candelabra.library import PublicCallable, entry_named, public, record

floor = record("floor")


def helper(x: Tensor) -> Tensor:
    """Stand for a function of this module, which is not in the library."""
    return x.sqrt()


@pytest.fixture
def declared() -> Iterator[Any]:
    """Declare a public callable for one test."""
    recordings = []

    def declare(function: Any) -> PublicCallable:
        with journal.Recording() as recording:
            public(function)
        recordings.append(recording)
        entry = entry_named(function.__name__)
        assert isinstance(entry, PublicCallable)
        return entry

    yield declare
    for recording in recordings:
        recording.undo()


def test_what_a_callable_names(declared: Any) -> None:
    """Names are variables, module attributes, methods, late imports, and names in comprehensions.
    Excluded are the callable itself, special methods, and names in functions of other packages.
    """

    def flicker(input: Tensor) -> Any:
        """Call several functions."""
        from candelabra import tan

        parts = [part.exp() for part in (input, floor(input))]
        size = input.size.__len__ if input.ndim else None
        return cd.cos(helper(parts[0])), tan(input), size, flicker

    assert called_by(declared(flicker)) == ["cos", "exp", "floor", "tan"]


def test_helper_functions_of_the_library_are_followed(declared: Any) -> None:
    """``zeros`` calls a function of its module that calls the operator; public callables are listed, not followed."""
    entry = entry_named("zeros")
    assert isinstance(entry, PublicCallable)
    assert called_by(entry) == ["full"]

    def glimmer(input: Tensor) -> Tensor:
        """Call a public callable."""
        return input + cd.zeros(3)

    assert called_by(declared(glimmer)) == ["zeros"]


def test_what_a_member_of_an_overload_set_calls_counts() -> None:
    """The member has no public name that could be listed instead."""
    entry = entry_named("logspace")
    assert isinstance(entry, PublicCallable)
    assert "linspace" in called_by(entry)
