"""The property of compiled calls: the core's runner passes, and a device's compiler that is wrong fails."""

from __future__ import annotations

from typing import Any

import pytest
from candelabra.graph import Graph, runner
from candelabra.library import open_device

from tests.conformance.failing import messages


@pytest.mark.parametrize("operator", ["add", "sort", "view", "softmax"])
def test_the_runner_is_right(operator: str) -> None:
    """Calls that run as graphs pass on the reference device."""
    assert messages(operator, "compiled", level=3) == []


def test_a_wrong_compiler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler whose graphs return the first payload in place of the result fails in the second call."""

    def compile(graph: Graph) -> Any:
        run = runner(graph)
        return lambda *payloads: tuple(payloads[0] for _ in run(*payloads))

    monkeypatch.setattr(open_device("cpu").backend, "compile", compile, raising=False)
    found = messages("exp", "compiled", level=3)
    assert found
    assert all("in the call that runs the graph" in message for message in found)


def test_a_graph_that_reuses_live_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler whose graphs return the results of their first run again fails, though the values are right."""

    def compile(graph: Graph) -> Any:
        run, first = runner(graph), []

        def kept(*payloads: Any) -> Any:
            first[:] = first or [run(*payloads)]
            return first[0]

        return kept

    monkeypatch.setattr(open_device("cpu").backend, "compile", compile, raising=False)
    found = messages("exp", "compiled", level=3)
    assert found
    assert all("is other after a write into the result of its next run" in message for message in found)


def test_operators_that_break() -> None:
    """Operators whose calls no graph can repeat are not applicable, which is no failure."""
    assert messages("nonzero", "compiled", level=3) == []
