"""The expected error of an invalid call: the reference's class, and the message of the reference or of the operator's
rule.

The reference runs the body of ``max_dim``, in which ``argmax`` raises; the rule of ``max_dim`` names ``max()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import OPERATORS, plugins
from candelabra_conformance.context import Context
from candelabra_conformance.fake import installed
from candelabra_conformance.model import FAILED, PASSED, Case
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.properties.refusals import outcome, ruling, same_text
from candelabra_conformance.samples.sample import sample
from candelabra_conformance.suite import plan, run_case

Kernel = Callable[..., Any]
Table = dict[str, Kernel]
OPERATOR = OPERATORS["max_dim"]
NOTHING = sample(np.ones((3, 0), np.float32), 1)
RULE = "max(): Expected reduction dim 1 to have non-zero size."
BODY = "argmax(): Expected reduction dim 1 to have non-zero size."


@contextmanager
def device(change: Callable[[Table], Table]) -> Iterator[Context]:
    """Install a device that is correct except for the kernels that ``change`` returns."""
    made = Mirror("refusing")
    made.table.update(change(made.table))
    remove = plugins.add_backend(made)
    try:
        yield Context("refusing")
    finally:
        remove()


def judged(context: Context) -> tuple[str, str]:
    """Return verdict and message of the invalid calls in float32."""
    (case,) = plan(context, operators=["max_dim"], patterns=["max_dim/errors/float32*"])
    raised = run_case(context, case, explained=False)
    return raised.verdict, raised.message


def failing_kernel(table: Table) -> Table:
    """Add a kernel of ``max_dim`` that fails for an empty dim."""
    values, places = table["amax"], table["argmax"]
    return {"max_dim": lambda x, dim, keepdim: (values(x, (dim,), keepdim), places(x, dim, keepdim))}


def kernel_of_zeros(table: Table) -> Table:
    """Add a kernel of ``max_dim`` that returns zeros for an empty dim."""
    whole, zeros = failing_kernel(table)["max_dim"], table["sum"]

    def kernel(x: Any, dim: int, keepdim: bool) -> Any:
        if 0 not in x.shape:
            return whole(x, dim, keepdim)
        return zeros(x, (dim,), keepdim, None), zeros(x, (dim,), keepdim, cd.int64)

    return {"max_dim": kernel}


def argmax_without_check(table: Table) -> Table:
    """Let the body's argmax return an index for an empty dim, so that the gather after it raises."""
    places, zeros = table["argmax"], table["sum"]

    def argmax(x: Any, dim: int, keepdim: bool) -> Any:
        return places(x, dim, keepdim) if 0 not in x.shape else zeros(x, (dim,), keepdim, cd.int64)

    return {"argmax": argmax}


def argmax_without_dim(table: Table) -> Table:
    """Let the body's operators return a result with one dim too few for an empty dim, so that the next view raises."""
    places, zeros, gather = table["argmax"], table["sum"], table["gather"]

    def argmax(x: Any, dim: int, keepdim: bool) -> Any:
        return places(x, dim, keepdim) if 0 not in x.shape else zeros(x, (dim,), False, cd.int64)

    def gathered(x: Any, dim: int, index: Any) -> Any:
        return gather(x, dim, index) if 0 not in x.shape else zeros(x, (dim,), False, None)

    return {"argmax": argmax, "gather": gathered}


@pytest.mark.usefixtures("owner_alone")
def test_the_rule_and_the_body_of_an_operator_may_differ_in_words() -> None:
    """The error of a kernel has the rule's message, the reference's error that of an operator in the body."""
    with device(failing_kernel) as context:
        assert ruling(OPERATOR, NOTHING, context.reference) == (IndexError, RULE)
        assert outcome(OPERATOR, NOTHING, context.instance) == (IndexError, RULE)
        assert outcome(OPERATOR, NOTHING, context.reference) == (IndexError, BODY)


def test_without_an_error_of_the_rule_the_message_is_the_references() -> None:
    """Without a rule only the reference's message is accepted."""
    fits = sample(np.ones((3, 2), np.float32), 1)
    assert ruling(OPERATOR, fits, Context(str(plugins.reference_device())).reference) is None


@pytest.mark.parametrize("change", [failing_kernel, lambda table: {}])
def test_words_of_the_rule_are_as_good_as_the_reference_s(change: Callable[[Table], Table]) -> None:
    """A device with its own kernel passes, and so does one that runs the body as the reference does."""
    with device(change) as context:
        assert judged(context) == (PASSED, "")


@pytest.mark.parametrize(
    ("change", "raised"),
    [
        (kernel_of_zeros, "nothing is raised"),
        (
            argmax_without_dim,
            "IndexError: 'Dimension out of range (expected to be in range of [-1, 0], but got 1)' is raised",
        ),
        (
            argmax_without_check,
            "RuntimeError: 'gather(): index 0 is out of bounds for dimension 1 with size 0' is raised",
        ),
    ],
)
def test_silence_and_other_words_and_another_class_fail(change: Callable[[Table], Table], raised: str) -> None:
    """The message has the actual error and both accepted messages."""
    with device(change) as context:
        verdict, message = judged(context)
    assert verdict == FAILED
    assert message.startswith(f"{raised}, IndexError: {RULE!r} or {BODY!r} is due")


@pytest.mark.parametrize("name", ["one", "sim", "ane", "index"])
@pytest.mark.parametrize("case", ["max_dim/errors/float32/contiguous", "index_select/errors/float32/contiguous"])
def test_a_device_may_have_a_name_that_is_a_word_or_a_part_of_one(name: str, case: str) -> None:
    """Its own texts are left as they are: "dimension" contains ``sim``'s letters, and "one of" the name ``one``."""
    with installed(name):
        operator, property, d, layout = case.split("/")
        result = run_case(Context(f"{name}:0"), Case(operator, property, d, layout), explained=False)
        assert (result.verdict, result.message) == (PASSED, "")


@pytest.mark.parametrize(
    ("text", "due", "same"),
    [
        ("expected one of (1, 2) on one:0", "expected one of (1, 2) on ref:0", True),
        ("expected one of (1, 2) on one", "expected one of (1, 2) on ref", True),
        ("'one' has none", "'ref' has none", True),
        ("'ref' has none", "'ref' has none", True),
        ("expected two of (1, 2)", "expected one of (1, 2)", False),
        ("prone to it", "pref to it", False),
        ("one: x (y)", "ref: x (y)", True),
        ("one: x y", "ref: x (y)", False),
        ("two: x", "ref: x", False),
    ],
)
def test_names_may_differ_only_where_the_reference_names_itself(text: str, due: str, same: bool) -> None:
    """Each whole word that names the reference may be the device's name instead; all other words are equal."""
    assert same_text(text, due, cd.device("one", 0), cd.device("ref", 0)) is same
