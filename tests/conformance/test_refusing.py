"""What a refusal is held to: the reference's class, and the reference's words or those of the operator's own rule.

The reference runs ``max_dim`` by its body, in which ``argmax`` refuses; the rule of ``max_dim`` says ``max()``.
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
from candelabra_conformance.model import FAILED, PASSED
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.properties.refusals import outcome, ruling
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
    """A device that is correct but for the kernels that ``change`` makes of the right ones."""
    made = Mirror("refusing")
    made.table.update(change(made.table))
    remove = plugins.add_backend(made)
    try:
        yield Context("refusing")
    finally:
        remove()


def judged(context: Context) -> tuple[str, str]:
    """Verdict and message on the mistakes in float32."""
    (case,) = plan(context, operators=["max_dim"], patterns=["max_dim/errors/float32*"])
    found = run_case(context, case, explained=False)
    return found.verdict, found.message


def native(table: Table) -> Table:
    """A kernel of ``max_dim``, which fails where there is nothing."""
    values, places = table["amax"], table["argmax"]
    return {"max_dim": lambda x, dim, keepdim: (values(x, (dim,), keepdim), places(x, dim, keepdim))}


def silent(table: Table) -> Table:
    """The same, but zeros come where there is nothing."""
    whole, zeros = native(table)["max_dim"], table["sum"]

    def kernel(x: Any, dim: int, keepdim: bool) -> Any:
        if 0 not in x.shape:
            return whole(x, dim, keepdim)
        return zeros(x, (dim,), keepdim, None), zeros(x, (dim,), keepdim, cd.int64)

    return {"max_dim": kernel}


def blind(table: Table) -> Table:
    """The body's operators find a place where there is none; what looks for it there says so."""
    places, zeros = table["argmax"], table["sum"]

    def place(x: Any, dim: int, keepdim: bool) -> Any:
        return places(x, dim, keepdim) if 0 not in x.shape else zeros(x, (dim,), keepdim, cd.int64)

    return {"argmax": place}


def flat(table: Table) -> Table:
    """The body's operators give of nothing what has a dim too few; the next view says so."""
    places, zeros, gather = table["argmax"], table["sum"], table["gather"]

    def place(x: Any, dim: int, keepdim: bool) -> Any:
        return places(x, dim, keepdim) if 0 not in x.shape else zeros(x, (dim,), False, cd.int64)

    def gathered(x: Any, dim: int, index: Any) -> Any:
        return gather(x, dim, index) if 0 not in x.shape else zeros(x, (dim,), False, None)

    return {"argmax": place, "gather": gathered}


def test_the_rule_and_the_body_of_an_operator_may_differ_in_words() -> None:
    """A kernel that fails has the rule's words, the reference those of an operator inside."""
    with device(native) as context:
        assert ruling(OPERATOR, NOTHING, context.reference) == (IndexError, RULE)
        assert outcome(OPERATOR, NOTHING, context.instance) == (IndexError, RULE)
        assert outcome(OPERATOR, NOTHING, context.reference) == (IndexError, BODY)


def test_a_rule_that_finds_nothing_wrong_says_nothing() -> None:
    """Then the reference's words alone are due."""
    fits = sample(np.ones((3, 2), np.float32), 1)
    assert ruling(OPERATOR, fits, Context(str(plugins.reference_device())).reference) is None


@pytest.mark.parametrize("change", [native, lambda table: {}])
def test_words_of_the_rule_are_as_good_as_the_reference_s(change: Callable[[Table], Table]) -> None:
    """A device with a kernel of its own passes, and one that runs the body as the reference does."""
    with device(change) as context:
        assert judged(context) == (PASSED, "")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (silent, "nothing is raised"),
        (flat, "IndexError: 'Dimension out of range (expected to be in range of [-1, 0], but got 1)' is raised"),
        (blind, "RuntimeError: 'gather(): index 0 is out of bounds for dimension 1 with size 0' is raised"),
    ],
)
def test_silence_and_other_words_and_another_class_fail(change: Callable[[Table], Table], found: str) -> None:
    """The message has what was raised and both texts that would do."""
    with device(change) as context:
        verdict, message = judged(context)
    assert verdict == FAILED
    assert message.startswith(f"{found}, IndexError: {RULE!r} or {BODY!r} is due")
