"""Overload sets in the suite: a set whose result differs from its member's is caught, and a program shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra.library import OPERATORS, Operator, OverloadSet, entries, operator, overloads, pointwise
from candelabra_conformance.context import Context
from candelabra_conformance.model import FAILED, PASSED, Case, Result
from candelabra_conformance.properties import overloads as property_module
from candelabra_conformance.records import name_of
from candelabra_conformance.references.registry import REFERENCES
from candelabra_conformance.samples import Maker, registry, sample
from candelabra_conformance.suite import plan, run_case

from tests.conformance.broken_device import run


@pytest.fixture
def context() -> Context:
    """Return a context that tests the reference device with its owner's kernels."""
    return Context(str(cd.get_default_device()), contributions="off")


Make = Callable[..., OverloadSet]


@pytest.fixture
def make() -> Iterator[Make]:
    """Declare ``flicker_once(input)``, ``flicker_by(input, factor)`` and a set of both, for one test."""
    recordings = []
    with journal.Recording() as recording:

        @operator(pointwise, public=False)
        def flicker_once(input: Tensor) -> Tensor:
            """Return twice the input."""
            return input * 2

        @operator(pointwise, public=False)
        def flicker_by(input: Tensor, factor: float = 2) -> Tensor:
            """Return the input times a number."""
            if factor == 13:
                raise ValueError("13 is refused")
            return input * factor

    recordings.append(recording)

    def once(t: Maker) -> Iterator[Any]:
        yield sample(t(4))

    def by(t: Maker) -> Iterator[Any]:
        yield sample(t(4), 3)
        yield sample(t(2, 3), factor=5)
        yield sample(t(3))

    def refused(t: Maker) -> Iterator[Any]:
        yield sample(t(4), 13, note="13")

    registry.INPUTS.update({"flicker_once": [once], "flicker_by": [by]})
    registry.MISTAKES["flicker_by"] = [refused]
    REFERENCES.update({"flicker_once": lambda x: x * 2, "flicker_by": lambda x, factor=2: x * factor})

    def declare(*members: Any, **options: Any) -> OverloadSet:
        with journal.Recording() as recording:
            found = overloads("flicker", *members, **options)
        recordings.append(recording)
        return found

    yield declare
    for recording in reversed(recordings):
        recording.undo()
    for table in (registry.INPUTS, registry.MISTAKES, REFERENCES):
        for name in ("flicker_once", "flicker_by"):
            table.pop(name, None)


def members() -> tuple[Operator[..., Any], Operator[..., Any]]:
    """Return the two records."""
    return OPERATORS["flicker_once"], OPERATORS["flicker_by"]


def results(context: Context) -> dict[str, Result]:
    """Return the results of the set's cases by id."""
    return {case.id: run_case(context, case) for case in plan(context, operators=["flicker"])}


def test_a_set_has_the_cases_of_its_members(context: Context, make: Make) -> None:
    """One dtype of each kind is tested, one with invalid calls, as a function, as a method and in place."""
    make(*members(), inplace=True)
    found = results(context)
    assert {r.verdict for r in found.values()} == {PASSED}
    assert set(found) == {
        *(f"flicker/overloads/{d}/contiguous" for d in ("float32", "int64", "complex64", "bool")),
        "flicker/overload-errors/float32/contiguous",
    }


def test_a_set_that_picks_another_member_is_caught(context: Context, make: Make) -> None:
    """The message names the member that was picked; the program calls both and fails."""

    def flicker_anything(input: Tensor, factor: Any = 1) -> Tensor:
        """Return the input."""
        return input * 1

    make(flicker_anything, *members())
    result = results(context)["flicker/overloads/float32/contiguous"]
    assert result.verdict == FAILED
    assert "flicker does not give what flicker_once gives, the set selects flicker_anything" in result.message
    assert "want = OPERATORS['flicker_once'](x)\ngot = cd.flicker(x)\n" in result.reproducer
    with pytest.raises(AssertionError):
        run(result.reproducer)


def test_a_method_and_an_in_place_form_that_differ_are_caught(
    context: Context, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite calls the attribute of the class Tensor."""
    make(*members(), inplace=True)
    monkeypatch.setattr(Tensor, "flicker_", lambda self, *args, **kwargs: self.mul_(5))
    result = results(context)["flicker/overloads/float32/contiguous"]
    assert "Tensor.flicker_ does not give what flicker_once gives" in result.message
    assert (
        "want = OPERATORS['flicker_once'].form('inplace')(x.clone())\ngot = x.clone().flicker_()" in result.reproducer
    )
    with pytest.raises(AssertionError):
        run(result.reproducer)
    monkeypatch.undo()
    run(result.reproducer)


def test_an_overload_of_fewer_parameters_has_fewer_calls(context: Context, make: Make) -> None:
    """A sample with an argument that the set does not accept for that member is not called through the set."""
    found = make((OPERATORS["flicker_by"], "input"))
    ((member, parameters),) = property_module.records_of(found)
    calls = context.samples(member, cd.float32)
    assert [property_module.accepts(found, member, parameters, context, call) for call in calls] == [False, False, True]
    assert {r.verdict for r in results(context).values()} == {PASSED}


def test_a_mistake_in_other_words_is_caught(context: Context, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that matches only one member must raise that member's error."""
    found = make(*members())
    wrong = lambda *args, **kwargs: (_ for _ in ()).throw(TypeError("no overload"))  # noqa: E731
    monkeypatch.setitem(found._forms, "function", wrong)
    case = Case("flicker", "overload-errors", "float32", "contiguous")
    result = run_case(context, case)
    assert result.verdict == FAILED
    assert "TypeError: 'no overload' is raised, flicker_" in result.message


def test_members_without_a_public_name_are_tried(context: Context, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public callable among the members is tested under its own name, and a program calls it through the set."""

    def flicker_text(input: Tensor, text: str) -> Tensor:
        """Return the input times the length of the text."""
        return input * len(text)

    def worded(t: Maker) -> Iterator[Any]:
        yield sample(t(4), "ab")

    monkeypatch.setitem(registry.INPUTS, "flicker_text", [worded])
    monkeypatch.setitem(REFERENCES, "flicker_text", lambda x, text: x * (len(text) + 1))
    make(flicker_text)
    assert {r.verdict for r in results(context).values()} == {PASSED}
    result = run_case(context, Case("flicker_text", "value", "float32", "contiguous"))
    assert result.verdict == FAILED
    assert "got = cd.flicker(x, 'ab')" in result.reproducer
    with pytest.raises(AssertionError):
        run(result.reproducer)
    monkeypatch.setattr(cd, "flicker", lambda input, text: input)
    result = results(context)["flicker/overloads/float32/contiguous"]
    assert "flicker does not give what flicker_text gives" in result.message
    assert "ValueError: flicker_text has no public name: only an overload set calls it\n" in result.reproducer
    with pytest.raises(AssertionError, match="flicker does not give what flicker_text gives"):
        run(result.reproducer)


def test_every_set_of_the_library_has_cases(context: Context) -> None:
    """Every set has at least one member that is a record with samples."""
    for entry in entries():
        if isinstance(entry, OverloadSet):
            cases = plan(context, operators=[name_of(entry)])
            assert "overloads" in {case.property for case in cases}, entry
