"""The reproducers of failed cases: they fail where the case failed, and pass on a correct device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.failure_program import of_failure
from candelabra_conformance.model import Case
from candelabra_conformance.program_trial import PASSES, best, shows
from candelabra_conformance.suite import run_case

from tests.conformance.broken_device import Break, run


def after(change: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a fault that calls ``change(result, *arguments)`` with the correct kernel's result and arguments."""

    def fault(kernel: Any) -> Any:
        def wrong(*args: Any) -> Any:
            result = kernel(*args)
            return change(result, *args) or result

        return wrong

    return fault


def add(image: Any, *_: Any) -> None:
    """Make the result off by one."""
    image.inner += 1


def no_infinity(image: Any, *_: Any) -> None:
    """Replace infinities by the largest finite number."""
    np.nan_to_num(image.inner, copy=False, nan=np.nan)


def positive_zero(image: Any, *_: Any) -> None:
    """Remove the sign of zeros."""
    image.inner += 0.0


def narrow(image: Any, *_: Any) -> Any:
    """Return indices of half the width."""
    image.inner = image.inner.astype(np.int32)


def write_back(image: Any, x: Any) -> None:
    """Write the result into the argument too."""
    x.inner[...] = image.inner


def one_result(kernel: Any) -> Any:
    """Return the same memory in every call."""
    kept: list[Any] = []

    def wrong(x: Any) -> Any:
        made = kernel(x)
        kept.append(made)
        if kept[0].shape != made.shape or kept[0].inner.dtype != made.inner.dtype:
            return made
        kept[0].inner[...] = made.inner
        return kept[0]

    return wrong


CASES = {
    "exp/value/float32/contiguous": ("exp", after(add), "wrong value"),
    "exp/value/float32/transposed": ("exp", after(add), "wrong value"),
    "exp/value/int64/contiguous": ("exp", after(add), "wrong value"),
    "exp/special/float32/contiguous": ("exp", after(no_infinity), "wrong value"),
    "neg/special/float32/contiguous": ("neg", after(positive_zero), "got 0.0, expected -0.0"),
    "argmax/result/float32/contiguous": ("argmax", after(narrow), "the payload holds candelabra.int32"),
    "exp/inputs/float32/contiguous": ("exp", after(write_back), "an input was changed"),
    "trunc/aliasing/float32/contiguous": ("trunc", lambda kernel: lambda x: x, "the result shares memory"),
    "expm1/aliasing/float32/contiguous": ("expm1", one_result, "the result shares memory"),
    "exp/inplace/float32/contiguous": ("exp_", after(lambda r, x: add(x)), "wrong value"),
    "sin/gradient/float32/contiguous": ("cos", after(add), "wrong value"),
    "add/errors/float32/contiguous": ("add", lambda kernel: lambda x, y: x, "expected RuntimeError, got None"),
}


@pytest.mark.parametrize("case", CASES)
def test_program_fails_on_the_broken_device_and_passes_on_the_correct_one(broken: Break, case: str) -> None:
    """Each property with its own form of program is tried once; the program is short whatever the samples are."""
    name, fault, words = CASES[case]
    operator, property, d, layout = case.split("/")
    broken(**{name: fault})
    result = run_case(Context("broken:0"), Case(operator, property, d, layout))
    assert result.verdict == "failed"
    with pytest.raises(AssertionError, match=words):
        run(result.reproducer)
    broken()
    run(result.reproducer)
    assert run_case(Context("broken:0"), Case(operator, property, d, layout)).verdict == "passed"


def test_failure_that_cannot_be_written_says_why(broken: Break) -> None:
    """A comment replaces the program; there is no error."""
    text = of_failure(Context("broken:0"), Case("exp", "value", "float32"), Failure("something"))
    assert text == "# no reproducer: ValueError: the failure has no sample\n"


def test_property_without_a_check_shows_what_came_out(broken: Break) -> None:
    """The program contains the call and prints its result, and the message has the rest."""
    context = Context("broken:0")
    sample = context.samples(OPERATORS["exp"], float32)[0]
    text = of_failure(context, Case("exp", "threads", "float32"), Failure("two threads differ", sample))
    assert "# two threads differ\n" in text
    assert text.endswith("got = cd.exp(x)\nprint(got)\n")
    run(text)


def test_program_is_tried_before_it_is_shown() -> None:
    """The first program that fails as the case did is shown, otherwise a comment; only assertion errors count."""
    assert shows("assert False")
    assert not shows("print(1)")
    assert not shows("1 / 0  # no assert")
    assert best("assert 0", lambda: "assert 1") == "assert 0"
    assert best("assert 1", lambda: "assert 0") == "assert 0"
    assert best("assert 1\n", lambda: "assert 2") == "assert 1\n" + PASSES
    assert best("print(1)", lambda: "assert 0") == "print(1)"
