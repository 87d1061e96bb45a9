"""Repeated and concurrent calls on devices that declare operators non-deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from candelabra.library import plugins
from candelabra_conformance.context import Context
from candelabra_conformance.model import FAILED, PASSED, SKIPPED, Case, Result
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.suite import run_case


@contextmanager
def varying(declares: frozenset[str], error: float = 1e-7) -> Iterator[Context]:
    """Install a device whose sums differ from call to call by a relative ``error``; the body of ``mean`` calls them."""
    made = Mirror("varying")
    calls, right = count(), made.table["sum"]

    def summed(*args: Any) -> Any:
        result = right(*args)
        if result.inner.dtype.kind == "f":
            result.inner = result.inner * result.inner.dtype.type(1 + error * (next(calls) % 2))
        return result

    made.table["sum"] = summed
    made.table.pop("mean", None)
    made.capabilities = replace(made.capabilities, nondeterministic=declares)
    remove = plugins.add_backend(made)
    try:
        yield Context("varying:0")
    finally:
        remove()


def judged(context: Context, operator: str, property: str) -> Result:
    """Return the result of a case in float32 on contiguous memory."""
    return run_case(context, Case(operator, property, "float32", "contiguous"), explained=False)


@pytest.mark.parametrize("operator", ["sum", "mean"])
def test_declared_operators_may_have_other_bits(operator: str) -> None:
    """The operator itself and one whose body calls it are exempt from equal bits, in several runs and threads."""
    with varying(frozenset({"sum"})) as context:
        assert judged(context, operator, "threads").verdict == PASSED
        alone = judged(context, operator, "determinism")
        assert (alone.verdict, alone.message) == (
            SKIPPED, "the backend declares the operator, or one that it calls, non-deterministic",
        )  # fmt: skip


@pytest.mark.parametrize(("operator", "property"), [("sum", "threads"), ("mean", "determinism"), ("mean", "threads")])
def test_operators_that_are_not_declared_have_equal_bits(operator: str, property: str) -> None:
    """Without a declaration, or with that of another operator, other bits are a failure."""
    with varying(frozenset({"cumsum"})) as context:
        found = judged(context, operator, property)
    assert found.verdict == FAILED
    assert "gives other bits" in found.message


def test_declared_operators_have_right_values_in_threads() -> None:
    """The declaration covers the order of additions and not wrong numbers."""
    with varying(frozenset({"sum"}), error=0.1) as context:
        found = judged(context, "sum", "threads")
    assert found.verdict == FAILED
    assert "elements wrong" in found.message
