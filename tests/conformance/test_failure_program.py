"""The reproducers of failed cases: they fail where the case failed, and pass on a correct device."""

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.failure_program import of_failure
from candelabra_conformance.fake import installed
from candelabra_conformance.model import Case
from candelabra_conformance.program_trial import PASSES, best, shows
from candelabra_conformance.records import UnknownNameError
from candelabra_conformance.rerun import case_named
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
    "sin/gradient2/float32/contiguous": ("sin", after(add), "wrong value"),
    "mul/gradient2/float32/contiguous": ("mul", after(add), "wrong value"),
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


class DriverError(RuntimeError):
    """An error that only a kernel raises."""


def failing(kernel: Any) -> Any:
    """Raise an error instead of computing."""

    def wrong(*args: Any) -> Any:
        raise DriverError("no such instruction")

    return wrong


RAISING = {
    "exp/value/float32/transposed": "exp",
    "exp/result/float32/contiguous": "exp",
    "exp/inplace/float32/contiguous": "exp_",
    "exp/inputs/float32/contiguous": "exp",
    "exp/determinism/float32/contiguous": "exp",
    "exp/threads/float32/contiguous": "exp",
    "index_select/value/float32/contiguous": "index_select",  # whose indices are invalid for smaller arrays
    "sin/gradient/float32/contiguous": "cos",
    "sin/gradient2/float32/contiguous": "cos",
}


@pytest.mark.parametrize("case", RAISING)
def test_program_of_a_kernel_that_raises_ends_with_its_error(broken: Break, case: str) -> None:
    """The call alone shows the fault, in the form that the property tests; nothing claims that it hangs on chance."""
    operator, property, d, layout = case.split("/")
    broken(**{RAISING[case]: failing})
    result = run_case(Context("broken:0"), Case(operator, property, d, layout))
    assert "DriverError: no such instruction" in result.message
    assert PASSES not in result.reproducer
    assert "rerun" not in result.reproducer
    with pytest.raises(DriverError, match="no such instruction"):
        run(result.reproducer)
    assert len(result.reproducer) < 1000
    broken()
    run(result.reproducer)


def test_the_message_has_the_error_of_the_array_library(broken: Break) -> None:
    """An error of the library that the core describes in its own words stands behind these words."""
    broken(exp=lambda kernel: lambda x: x.nothing_of_this_name)
    result = run_case(Context("broken:0"), Case("exp", "value", "float32", "contiguous"))
    first = result.message.splitlines()[0]
    assert re.search("cannot compute with these arguments.*, from AttributeError: .*nothing_of_this_name", first), first


def second_call(kernel: Any) -> Any:
    """Compute wrong values in every second call of a thread other than the main one."""

    def wrong(*args: Any) -> Any:
        result = kernel(*args)
        if threading.current_thread() is not threading.main_thread():
            result.inner += 1
        return result

    return wrong


def test_program_of_threads_asserts_that_their_results_agree(broken: Break) -> None:
    """The call runs in four threads and is compared with the same call in one."""
    broken(exp=second_call)
    result = run_case(Context("broken:0"), Case("exp", "threads", "float32", "contiguous"))
    assert "rerun" not in result.reproducer
    with pytest.raises(AssertionError, match="of 100 results in 4 threads differ"):
        run(result.reproducer)
    broken()
    run(result.reproducer)


def test_program_of_out_asserts_the_values(broken: Break) -> None:
    """The receiver holds other values than the function is due to return."""
    broken(exp=after(add))
    result = run_case(Context("broken:0"), Case("exp", "out", "float32", "contiguous"))
    assert ", out=got)" in result.reproducer
    with pytest.raises(AssertionError, match="wrong value"):
        run(result.reproducer)
    broken()
    run(result.reproducer)


@pytest.mark.parametrize("case", ["mul/inplace-gradient/float32/contiguous"])
def test_what_literals_cannot_express_is_checked_by_the_suites_case(broken: Break, case: str) -> None:
    """The program runs the case again, and ends with the message of its failure."""
    operator, property, d, layout = case.split("/")
    broken(sin=after(add), mul=after(add))
    result = run_case(Context("broken:0"), Case(operator, property, d, layout))
    assert f"check('broken:0', '{case}')" in result.reproducer
    assert "# Plain calls cannot express the check of" in result.reproducer
    with pytest.raises(AssertionError, match="gradient"):
        run(result.reproducer)
    broken()
    run(result.reproducer)


def test_forbidden_fallback_has_a_program() -> None:
    """It runs the case with the same prohibition, and ends with the message that names the kernel."""
    with installed("lacking", missing_kernels=("tanh",)):
        case = Case("tanh", "value", "float32", "contiguous")
        result = run_case(Context("lacking:0"), case, forbid_fallback=True)
        assert "a fallback is forbidden here, and tanh fell back" in result.message
        with pytest.raises(AssertionError, match="and tanh fell back"):
            run(result.reproducer)


def test_case_that_is_named_wrongly_is_refused() -> None:
    """The error says what an id looks like; an unknown operator is another error."""
    with pytest.raises(ValueError, match=r"expected OPERATOR/PROPERTY/DTYPE/LAYOUT, .* got 'exp/valeu/float32'"):
        case_named("exp/valeu/float32")
    with pytest.raises(ValueError, match="got 'device'"):
        case_named("device")
    with pytest.raises(UnknownNameError, match="'sofmax'"):
        case_named("sofmax/value/float32")
    assert case_named("device/roundtrip/float32/step") == Case("device", "roundtrip", "float32", "step")
    assert case_named("exp/samples") == Case("exp", "samples")


def test_failure_that_does_not_happen_again_says_so(broken: Break) -> None:
    """A comment says that the program passed when it was tried, and why it is no plain call."""
    text = of_failure(Context("broken:0"), Case("exp", "value", "float32", "contiguous"), Failure("something"))
    assert "# something\n# No program of plain calls: ValueError: the failure has no sample\n" in text
    assert text.endswith("check('broken:0', 'exp/value/float32/contiguous')\n" + PASSES)
    run(text)


def test_program_is_tried_before_it_is_shown() -> None:
    """The first program that fails as the case did is shown, otherwise a comment; other errors do not count."""
    assert shows("assert False")
    assert not shows("print(1)")
    assert not shows("1 / 0  # no assert")
    assert shows("1 / 0", ZeroDivisionError)
    assert not shows("[][0]", ZeroDivisionError)
    assert best("assert 0", lambda: "assert 1") == "assert 0"
    assert best("assert 1", lambda: "assert 0") == "assert 0"
    assert best("assert 1\n", lambda: "assert 2") == "assert 1\n" + PASSES
    assert best("print(1)", lambda: "assert 0") == "print(1)"
