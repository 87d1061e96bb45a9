"""Public callables in the suite: each property catches its fault, and the reproducer shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra.library import PublicCallable, entry_named, public
from candelabra_conformance.context import Context
from candelabra_conformance.model import FAILED, PASSED
from candelabra_conformance.records import CallableRecord
from candelabra_conformance.references.registry import AS_GIVEN, REFERENCES
from candelabra_conformance.samples import Fresh, HostArray, Maker, registry, sample
from candelabra_conformance.suite import plan, run_case

from tests.conformance.broken_device import run

Declare = Callable[..., CallableRecord]


@pytest.fixture
def context() -> Context:
    """Return a context that tests the reference device with its owner's kernels."""
    return Context(str(cd.get_default_device()), contributions="off")


def fresh() -> Context:
    """Return another context of the same device, which knows no references yet."""
    return Context(str(cd.get_default_device()), contributions="off")


@pytest.fixture
def declare() -> Iterator[Declare]:
    """Declare a public callable with samples and a reference, for one test."""
    names: list[str] = []
    recordings: list[Any] = []

    def declared(function: Any, samples: Any, reference: Any, as_given: bool = False, **options: Any) -> Any:
        with journal.Recording() as recording:
            public(**options)(function)
        recordings.append(recording)
        entry = entry_named(function.__name__)
        assert isinstance(entry, PublicCallable)
        record = CallableRecord(entry)
        names.append(record.name)
        registry.INPUTS[record.name] = [samples]
        REFERENCES[record.name] = reference
        if as_given:
            AS_GIVEN.add(record.name)
        return record

    yield declared
    for recording in recordings:
        recording.undo()
    for name in names:
        registry.INPUTS.pop(name)
        REFERENCES.pop(name)
        AS_GIVEN.discard(name)


def verdicts(context: Context, name: str) -> dict[str, str]:
    """Return the worst verdict of each property."""
    found: dict[str, str] = {}
    for case in plan(context, operators=[name]):
        verdict = run_case(context, case).verdict
        if found.get(case.property) != FAILED:
            found[case.property] = verdict
    return found


def message(context: Context, name: str, property: str) -> str:
    """Return the message of the first failing case of a property."""
    cases = (case for case in plan(context, operators=[name]) if case.property == property)
    return next(r.message for r in (run_case(context, c) for c in cases) if r.verdict == FAILED)


def vectors(t: Maker) -> Iterator[Any]:
    """Return two short vectors."""
    if t.is_floating:
        yield sample(t(4))
        yield sample(t(3))


# -- each property catches its fault ----------------------------------------------------------------------------------
def test_a_correct_callable_passes(context: Context, declare: Declare) -> None:
    """All cases that are planned for a function of a tensor pass."""

    def flicker(input: Tensor) -> tuple[Tensor, int]:
        """Return twice the input, and its size."""
        return input * 2, input.numel()

    declare(flicker, vectors, lambda x: (x * 2, x.size))
    found = verdicts(context, "flicker")
    compiled = ("compiled", "compiled-gradient", "compiled-backward")
    assert found == dict.fromkeys(("samples", "value", "result", "inputs", "forms", "gradient", *compiled), PASSED)


def test_wrong_values_and_wrong_numbers_are_caught(context: Context, declare: Declare) -> None:
    """Tensors are compared with the reference within the bound, all other values by equality and type."""

    def flicker(input: Tensor) -> Any:
        """Return a value that differs from the reference."""
        return input * 2, 3

    declare(flicker, vectors, lambda x: (x * 2.5, 3))
    assert "elements wrong" in message(context, "flicker", "value")
    REFERENCES["flicker"] = lambda x: (x * 2, 3.0)
    assert "the result is 3, 3.0 is due" in message(fresh(), "flicker", "value")
    REFERENCES["flicker"] = lambda x: (x * 2, 3, None)
    assert "1 results that are no tensors, 2 are due" in message(
        Context(str(context.device), "off"), "flicker", "value"
    )


def test_another_dtype_and_another_type_are_caught(context: Context, declare: Declare) -> None:
    """The reference determines the kind of numbers, the signature the type of the result."""

    def flicker(input: Tensor) -> Tensor:
        """Return integers instead of floats."""
        return (input * 2).to(cd.int64)

    def glimmer(input: Tensor) -> list[Tensor]:
        """Return a tuple instead of a list."""
        return (input,)  # type: ignore[return-value]

    declare(flicker, vectors, lambda x: np.trunc(x * 2))
    declare(glimmer, vectors, lambda x: [x])
    assert "the result is int64, the reference gives float64" in message(context, "flicker", "result")
    assert "the result is a tuple, the signature says list[Tensor]" in message(context, "glimmer", "result")


def test_where_the_result_hangs_on_the_dtype_the_very_dtype_is_due(context: Context, declare: Declare) -> None:
    """A reference that computes in the operands' own dtype determines it; float64 for float32 is an error."""

    def flicker(input: Tensor) -> Tensor:
        """Return the result in another precision."""
        return input.double()

    declare(flicker, vectors, lambda x: x, as_given=True)
    assert "the result is float64, the reference gives" in message(context, "flicker", "result")


def test_a_write_into_an_input_is_caught(context: Context, declare: Declare) -> None:
    """Only callables whose name ends in an underscore may write to an input, and must return it."""

    def flicker(input: Tensor) -> Tensor:
        """Halve the input as a side effect."""
        with cd.no_grad():
            input.mul_(0.5)
        return input * 2

    def flicker_(input: Tensor) -> Tensor:
        """Halve the input in place."""
        return input.mul_(0.5)

    def glimmer_(input: Tensor) -> Tensor:
        """Halve the input and return another tensor."""
        return input.mul_(0.5).clone()

    declare(flicker, vectors, lambda x: x)
    declare(flicker_, vectors, lambda x: x / 2)
    declare(glimmer_, vectors, lambda x: x / 2)
    assert "an input was written to" in message(context, "flicker", "inputs")
    assert set(verdicts(context, "flicker_").values()) == {PASSED}
    assert "the result is not the tensor that was given" in message(context, "glimmer_", "forms")


def test_a_method_that_differs_is_caught_with_a_program_that_shows_it(
    context: Context, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite calls the public names, and not the function that was declared."""

    def flicker(input: Tensor) -> Tensor:
        """Return twice the input."""
        return input * 2

    declare(flicker, vectors, lambda x: x * 2)
    monkeypatch.setattr(Tensor, "flicker", lambda self: self * 3)
    (case,) = [c for c in plan(context, operators=["flicker"]) if c.property == "forms"]
    done = run_case(context, case)
    assert "Tensor.flicker gives something else than the function" in done.message
    assert "want = cd.flicker(x)\ngot = x.flicker()\n" in done.reproducer
    with pytest.raises(AssertionError):
        run(done.reproducer)


def test_numpys_names_are_tried(context: Context, declare: Declare) -> None:
    """A callable with ``dim`` is called with ``axis`` too, unless it declares an ``axis`` itself."""
    from candelabra_conformance.properties.public_forms import call_forms

    def flicker(input: Tensor, dim: int = 0, keepdim: bool = False) -> Tensor:
        """Return sums."""
        return input.sum(dim, keepdim)

    def glimmer(input: Tensor, axis: int = 0, dim: int = 0) -> Tensor:
        """Return sums."""
        return input.sum(dim)

    call = sample(np.ones((2, 3)), 1, True)
    found = {form.words: form.call for form in call_forms(declare(flicker, vectors, np.sum), call)}
    assert found["axis=, keepdims="].kwargs == {"axis": 1, "keepdims": True}
    assert found["axis=, keepdims="].args == call.args[:1]
    assert not [w for w in call_forms(declare(glimmer, vectors, np.sum), call) if "=" in w.words]


def test_a_missing_gradient_is_caught(context: Context, declare: Declare) -> None:
    """A floating result must have a history unless the sample says otherwise, and a correct derivative."""

    def flicker(input: Tensor) -> Tensor:
        """Return twice the input without its history."""
        return input.detach() * 2

    def silent(t: Maker) -> Iterator[Any]:
        """Return a sample that expects no history."""
        if t.is_floating:
            yield sample(t(4), gradient=False)

    declare(flicker, vectors, lambda x: x * 2)
    assert "no result requires grad" in message(context, "flicker", "gradient")
    registry.INPUTS["flicker"] = [silent]
    assert "gradient" not in verdicts(Context(str(context.device)), "flicker")

    def glimmer(input: Tensor) -> Tensor:
        """Return the cube, with a history of only one factor."""
        return input.detach() ** 2 * input

    declare(glimmer, vectors, lambda x: x**3)
    assert "finite differences disagree" in message(context, "glimmer", "gradient")


def test_keywords_of_factories_and_out_are_tried(context: Context, declare: Declare) -> None:
    """A factory that ignores its keywords is caught, and a function that does not return its ``out=``."""

    def shapes(t: Maker) -> Iterator[Any]:
        """Return one size."""
        if t.dtype.name == "float32":
            yield sample(3)

    def flicker(size: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return ones in float32, whatever dtype is requested."""
        return cd.ones(size, device=device)

    def glimmer(size: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return ones."""
        return cd.ones(size, dtype=dtype, device=device)

    declare(flicker, shapes, np.ones, factory=True, method=False)
    declare(glimmer, shapes, np.ones, factory=True, method=False)
    assert "dtype=candelabra.float64: the result is float32" in message(context, "flicker", "factory")
    assert verdicts(context, "glimmer")["factory"] == PASSED


def test_mistakes_of_a_callable_are_tried(context: Context, declare: Declare) -> None:
    """If the samples have invalid calls, a call that does not raise is a failure."""

    def flicker(input: Tensor) -> Tensor:
        """Refuse vectors of three elements."""
        if input.numel() == 3:
            raise ValueError("three is too many")
        return input + 0

    def wrong(t: Maker) -> Iterator[Any]:
        """Return an argument that is refused."""
        yield sample(t(3), note="three")

    def right(t: Maker) -> Iterator[Any]:
        """Return an argument that is accepted."""
        yield sample(t(2), note="two")

    declare(flicker, lambda t: iter([sample(t(4))] if t.is_floating else []), lambda x: x)
    assert "errors" not in verdicts(context, "flicker")
    try:
        registry.MISTAKES["flicker"] = [wrong]
        assert verdicts(context, "flicker")["errors"] == PASSED
        registry.MISTAKES["flicker"].append(right)
        assert "the reference raises nothing for this mistake (two)" in message(
            Context(str(context.device)), "flicker", "errors"
        )
    finally:
        registry.MISTAKES.pop("flicker", None)


# -- samples ----------------------------------------------------------------------------------------------------------
def test_arguments_are_created_for_each_call(context: Context, declare: Declare) -> None:
    """Python source is evaluated and arrays are copied for each call, so a call cannot affect the next one."""
    seen: list[Any] = []

    def flicker(array: Any, values: Any) -> int:
        """Write to both arguments."""
        seen.append((array, values))
        array[0] += 1
        values.append(1)
        return len(values)

    def arguments(t: Maker) -> Iterator[Any]:
        """Return an array and a list."""
        if t.dtype.name == "float32":
            yield sample(HostArray(np.zeros(2, np.float32)), Fresh("[str(device)]"))

    declare(flicker, arguments, lambda array, values: 2, method=False)
    assert verdicts(context, "flicker")["value"] == PASSED
    assert len(seen) > 2
    assert all(array[0] == 1 and values == [str(context.device), 1] for array, values in seen)
