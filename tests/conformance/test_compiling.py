"""The properties of compiled calls: the core's runner passes, and a device's compiler that is wrong fails."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from candelabra.graph import Graph, runner
from candelabra.library import open_device
from candelabra_conformance.model import BAD, DEVICE, PASSED, Case
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import installed, quick_of
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.suite import plan, run_case

from tests.conformance.failing import messages


@pytest.mark.parametrize("operator", ["add", "sort", "view", "softmax"])
def test_the_runner_is_right(operator: str) -> None:
    """Calls that run as graphs pass on the reference device."""
    assert messages(operator, "compiled", level=3) == []


@pytest.mark.parametrize("property", ["compiled-gradient", "compiled-backward"])
@pytest.mark.parametrize("operator", ["mul", "softmax", "var_mean", "matmul"])
def test_gradients_of_the_runner_are_right(operator: str, property: str) -> None:
    """Gradients through graphs pass on the reference device: real and complex, in every layout."""
    assert messages(operator, property, level=3) == []


@pytest.mark.parametrize(
    ("name", "property"),
    [
        ("from_numpy", "compiled"),
        *product(
            ("chunk", "Tensor.addbmm_"),
            ("compiled", "compiled-gradient", "compiled-backward"),
        ),
    ],
)
def test_public_callables_are_compiled(name: str, property: str) -> None:
    """Public callables that are no operators pass: composites, writes, arrays of the host, views of views."""
    assert messages(name, property, level=3) == []


@pytest.mark.parametrize("property", ["compiled-gradient", "compiled-backward"])
def test_a_cotangent_that_is_taken_for_a_constant_is_found(property: str) -> None:
    """A compiler whose graphs return the results of their first run fails when the cotangents change their sign."""
    with installed(load()["compiled-graphs-run-once"].make()) as context:
        (case,) = plan(context, operators=("tanh",), level=2, patterns=[f"tanh/{property}/float32/*"])
        found = run_case(context, case, explained=False)
    assert found.verdict in BAD
    assert "in the call that runs the graph again: gradient 0" in found.message


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


def programs(backend: Mirror) -> dict[Case, str]:
    """Return the verdicts of the cases of several operators on a device. Every quick run has these cases."""
    with installed(backend) as context:
        cases = plan(context, level=2, operators=(DEVICE,), patterns=["device/compiled*/*"])
        assert set(cases) == quick_of(context, cases)
        return {case: run_case(context, case, explained=False).verdict for case in cases}


@pytest.mark.parametrize("mutable", [True, False])
def test_programs_of_the_runner_are_right(mutable: bool) -> None:
    """Programs of several operators pass where the core runs the graphs, also of immutable arrays."""
    found = programs(Mirror("compiles_nothing", mutable=mutable))
    assert {case.property for case in found} == {"compiled", "compiled-gradient"}
    assert {case.layout for case in found} == {"pointwise", "rows", "product", "written", "drawn"}
    assert set(found.values()) == {PASSED}


@pytest.mark.parametrize("name", [name for name, mutant in load().items() if mutant.family == "compilers"])
def test_programs_find_each_wrong_compiler(name: str) -> None:
    """A quick run finds every wrong compiler of the catalogue by the programs of several operators."""
    backend = load()[name].make()
    assert isinstance(backend, Mirror)
    assert BAD.intersection(programs(backend).values())
