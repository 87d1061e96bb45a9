"""What the compiler tells: counters, logs, explanations, generated code; and names of PyTorch's that say so."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    cd.compiler.counters.clear()
    yield
    cd.compiler.set_logs()
    cd.compiler.counters.clear()


def branch(a: cd.Tensor, b: cd.Tensor) -> cd.Tensor:
    """Read a value between two operators."""
    x = a / (a.abs() + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_explain_counts_graphs_and_breaks() -> None:
    """The explanation has the operators between breaks, and each break with its reason and line."""
    found = cd.compiler.explain(branch)(cd.ones(3), cd.ones(3))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 6)
    assert found.ops_per_graph == [["abs", "add", "div", "sum", "lt"], ["mul"]]
    assert found.break_reasons[0].where.startswith("test_observing.py:")
    text = str(found)
    assert "Graph Break Count: 1" in text
    assert "the value of a tensor is read" in text
    first, second = found.graphs
    assert len(first.outputs) == 2
    assert len(second.inputs) == 2
    summary, _, graphs, names, reasons, report = cd._dynamo.explain(branch, cd.ones(3), cd.ones(3))
    assert summary == "2 graphs with 1 graph breaks and 6 ops"
    assert len(graphs) == len(names) == 2
    assert len(reasons) == 1
    assert "Ops per Graph" in report


def test_explain_takes_modules_and_compiled_functions() -> None:
    """A module, its compiled form and a compiled function are explained by what they call; parameters are guarded."""
    layer = nn.Linear(3, 2)
    for function in (layer, cd.compile(layer), cd.compile(lambda x: layer(x))):
        found = cd.compiler.explain(function)(cd.ones(1, 3))
        assert found.ops_per_graph == [["linear"]]
        assert found.graph_break_count == 0
        assert any("weight" in guard for guard in found.out_guards)


def test_counters_count_what_happened() -> None:
    """Programs, their operators, breaks by reason and recompilations are counted."""
    counters = cd._dynamo.utils.counters
    compiled = cd.compile(lambda x: x.exp() + 1)
    compiled(cd.ones(2))
    compiled(cd.ones(3))
    assert counters["stats"] == {"unique_graphs": 2, "calls_captured": 4}
    assert counters["frames"] == {"total": 2, "ok": 2}
    assert sum(counters["recompiles"].values()) == 1
    with pytest.warns(UserWarning, match="in segments"):
        cd.compile(branch)(cd.ones(2), cd.ones(2))
    [(reason, count)] = counters["graph_break"].items()
    assert "the value of a tensor is read" in reason
    assert count == 1


def test_logs_show_what_was_selected(capsys: pytest.CaptureFixture[str]) -> None:
    """Each log names the function and shows its part: graphs, code, fusion, guards, breaks, recompilations."""
    weight = cd.ones(2)

    def fused(x: cd.Tensor) -> cd.Tensor:
        return (x.exp() + weight).sum(0)

    cd._logging.set_logs(graph=True, graph_code=True, fusion=True, guards=True, output_code=True, recompiles=True)
    compiled = cd.compile(fused)
    compiled(cd.ones(4, 2))
    text = capsys.readouterr().err
    for part in (
        "TRACED GRAPH of fused (test_observing.py", "float32[4, 2] = exp(a0)", "exp = candelabra_exp(a0)",
        "FUSION of fused", "3 operators", "argument 0: candelabra.float32, shape (4, 2), cpu", "'weight' of fused",
        "def compiled(a0):",
    ):  # fmt: skip
        assert part in text, part
    assert "Recompiling" not in text
    compiled(cd.ones(5, 2))
    text = capsys.readouterr().err
    assert "Recompiling function fused" in text
    assert "shape (4, 2), cpu, which is now" in text
    cd.compiler.set_logs(graph_breaks=True)
    with pytest.warns(UserWarning, match="in segments"):
        cd.compile(branch)(cd.ones(2), cd.ones(2))
    text = capsys.readouterr().err
    assert "Graph break in branch (test_observing.py" in text
    assert "TRACED GRAPH" not in text
    cd.compiler.set_logs(graph=False)
    cd.compile(lambda x: x + 1)(cd.ones(2))
    assert capsys.readouterr().err == ""


def test_levels_log_each_compilation(capsys: pytest.CaptureFixture[str]) -> None:
    """PyTorch's parts of the compiler take a level."""
    cd.compiler.set_logs(dynamo=logging.DEBUG, modules={"candelabra.something": logging.ERROR})
    cd.compile(lambda x: x + 1)(cd.ones(2))
    text = capsys.readouterr().err
    assert "tracing <lambda>" in text
    assert "compiled <lambda>" in text
    assert logging.getLogger("candelabra.something").level == logging.ERROR


def test_logs_of_other_names_are_refused() -> None:
    """The error lists the names."""
    with pytest.raises(
        ValueError, match=r"set_logs\(\): there is no log 'bytecode'; expected one of graph, graph_code"
    ):
        cd.compiler.set_logs(bytecode=True)
    assert set(cd.compiler.LOGS) >= {"graph", "guards", "fusion", "output_code"}


def test_the_format_and_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Environment variables select logs and their format, as PyTorch's."""
    internal = cd._logging._internal
    monkeypatch.setenv("TORCH_LOGS_FORMAT", "")
    monkeypatch.setenv("TORCH_LOGS", "+dynamo, graph, -guards, unknown")
    internal.DEFAULT_FORMATTER = internal._default_formatter()
    internal._init_logs()
    cd.compile(lambda x: x + 1)(cd.ones(2))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("tracing <lambda>")
    assert any(line.startswith("TRACED GRAPH") for line in lines)
    monkeypatch.delenv("TORCH_LOGS_FORMAT")
    internal.DEFAULT_FORMATTER = internal._default_formatter()
    monkeypatch.delenv("TORCH_LOGS")
    internal._init_logs()


def test_generated_code_of_a_call() -> None:
    """``run_and_get_code`` returns the result and the source of each program that is compiled meanwhile."""
    compiled = cd.compile(lambda x: x.exp() + 1)
    result, [code] = cd._inductor.utils.run_and_get_code(compiled, cd.zeros(2))
    assert result.tolist() == [2, 2]
    assert "def compiled(a0):" in code
    assert "def graph(" in code
    assert cd._inductor.utils.run_and_get_code(compiled, cd.zeros(2))[1] == []


def test_a_break_on_request() -> None:
    """``graph_break`` ends the graph; outside of compiled functions it does nothing."""

    def f(x: cd.Tensor) -> cd.Tensor:
        y = x + 1
        cd._dynamo.graph_break("here")
        return y * 2

    assert f(cd.ones(1)).item() == 4
    with pytest.warns(UserWarning, match=r"graph_break\('here'\) is called"):
        assert cd.compile(f)(cd.ones(1)).item() == 4
    with pytest.raises(RuntimeError, match=r"graph_break\('here'\) is called"):
        cd.compile(f, fullgraph=True)(cd.ones(1))
    forbidden = cd._dynamo.disallow_in_graph(cd.sin)
    assert cd.equal(forbidden(cd.ones(2)), cd.ones(2).sin())
    with pytest.raises(RuntimeError, match="sin is disallowed in graphs"):
        cd.compile(lambda x: forbidden(x), fullgraph=True)(cd.ones(2))


def test_a_trace_as_a_module() -> None:
    """``_dynamo.export`` returns a GraphModule with parameters as attributes, which returns what the function does."""
    layer, x = nn.Linear(3, 2), cd.randn(4, 3)
    module, guards = cd._dynamo.export(lambda x, scale: {"y": (layer(x) * scale, scale)}, x, 2.0)
    assert guards == ()
    assert "y" in module(x)
    cd.testing.assert_close(module(x)["y"][0], layer(x) * 2)
    assert module(x)["y"][1] == 2.0
    module(x)["y"][0].sum().backward()
    assert layer.weight.grad is not None
    with pytest.raises(cd.graph.GraphBreak, match="the value of a tensor is read"):
        cd._dynamo.export(branch)(cd.ones(2), cd.ones(2))
    with pytest.raises(RuntimeError, match=r"export\(\): the function draws random numbers"):
        cd._dynamo.export(lambda x: x + cd.rand(4, 3), x)


def test_names_of_the_tracer() -> None:
    """PyTorch's further names work as their public counterparts, or say that they have no effect."""
    x = cd.ones(2)
    assert cd._dynamo.optimize("eager")(lambda x: x + 1)(x).tolist() == [2, 2]
    assert cd._dynamo.mark_static(x) is x
    assert issubclass(cd._dynamo.OptimizedModule, nn.Module)
    with pytest.warns(UserWarning, match=r"mark_dynamic\(\) has no effect: compiled functions are compiled again"):
        assert cd._dynamo.mark_dynamic(x, 0) is x
    same = cd._dynamo.utils.same
    assert same([x, {"a": 1}], [x.clone(), {"a": 1}])
    assert not same(x, x + 1)
    assert not same([x], x)
    assert not same(x, x.double())
    assert not same(1, 2)
    from candelabra.utils._triton import has_triton, has_triton_package

    assert not has_triton()
    assert not has_triton_package()
    for module in (cd._dynamo, cd._inductor):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = module.nothing


def test_parts_of_generated_code_are_refused_when_they_run() -> None:
    """Packages and generated C++ have no counterpart, and the error names the alternative."""
    for name in ("aoti_compile_and_package", "aoti_load_package", "aot_compile"):
        with pytest.raises(NotImplementedError, match=rf"_inductor\.{name}\(\): graphs are compiled in the process"):
            getattr(cd._inductor, name)("model.pt2")
    from candelabra._inductor.async_compile import AsyncCompile

    compiler = AsyncCompile()
    for kernel in (compiler.cpp(""), compiler.cpp_pybinding([], ""), compiler.triton("k", "")):
        with pytest.raises(NotImplementedError, match="code that PyTorch's compiler has generated needs its headers"):
            kernel()


def test_functions_for_pytorchs_tracer() -> None:
    """``substitute_in_graph`` checks its functions and returns the second; ``wrap_numpy`` runs NumPy on tensors."""
    import operator

    @cd.compiler.substitute_in_graph(operator.indexOf)
    def index_of(a: list[int], b: int, /) -> int:
        return a.index(b)

    assert index_of([4, 5], 5) == 1
    with pytest.raises(TypeError, match=r"substitute_in_graph\(\): <lambda> takes \(x\), expected the parameters of"):
        cd.compiler.substitute_in_graph(operator.indexOf)(lambda x: x)
    with pytest.raises(TypeError, match=r"substitute_in_graph\(\) expects functions, not int"):
        cd.compiler.substitute_in_graph(operator.indexOf)(3)  # type: ignore[arg-type]

    def norm(x: Any, axis: int) -> dict[str, Any]:
        return {"norm": (x**2).sum(axis) ** 0.5, "axis": axis}

    wrapped, x = cd.compiler.wrap_numpy(norm), cd.randn(3, 4)
    found = wrapped(x, axis=1)
    cd.testing.assert_close(found["norm"], x.norm(dim=1))
    assert found["axis"] == 1
    with pytest.warns(UserWarning, match="the memory of a tensor is shared with NumPy"):
        cd.testing.assert_close(cd.compile(wrapped)(x, axis=1)["norm"], x.norm(dim=1))


def test_one_function_over_lists() -> None:
    """``foreach_map`` calls a function for each position of its lists, in a compiled function as one graph."""
    from candelabra._higher_order_ops.foreach_map import foreach_map

    a, b = [cd.ones(2), cd.ones(3)], [cd.full((2,), 2.0), cd.full((3,), 3.0)]

    def f(a: list[cd.Tensor], b: list[cd.Tensor]) -> list[cd.Tensor]:
        return foreach_map(lambda x, y, k: x * y + k, a, b, 1.0)

    compiled = cd.compile(f, fullgraph=True)
    for _ in range(3):
        assert [t.tolist() for t in compiled(a, b)] == [[3, 3], [4, 4, 4]]
    assert [t.tolist() for t in foreach_map(cd.lerp, a, b, weight=0.5)] == [[1.5, 1.5], [2, 2, 2]]
    with pytest.raises(TypeError, match=r"foreach_map\(\): expected at least one list of tensors"):
        foreach_map(cd.sin, cd.ones(2))
    with pytest.raises(ValueError, match=r"foreach_map\(\): expected lists of one length, got 1, 2"):
        foreach_map(cd.add, a, a[:1])
