"""Backends, options and passes of compile: what programs do with the graphs of compiled functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra._compile.backends import _registered


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    before = dict(_registered)
    with cd.compiler.config.patch(recompile_limit=8, suppress_errors=False, passes=()):
        yield
    _registered.clear()
    _registered.update(before)


class Seen:
    """A backend that keeps the graphs that it gets. ``make`` computes its result from each."""

    def __init__(self, make: Callable[[Any], Any] = lambda gm: gm.forward) -> None:
        self.make = make
        self.graphs: list[Any] = []
        self.inputs: list[list[Any]] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        self.inputs.append(example_inputs)
        return self.make(gm)


def test_a_backend_gets_the_graph_and_its_function_runs() -> None:
    """The backend sees the operators by their public functions, and the tensors of the call."""
    seen, calls = Seen(), []
    seen.make = lambda gm: lambda *args: calls.append(args) or gm(*args)
    x, y = cd.randn(3, 4), cd.randn(4)
    compiled = cd.compile(lambda x: (x.sin() + y).sum(0), backend=seen)
    expected = (x.sin() + y).sum(0)
    for _ in range(3):
        assert cd.equal(compiled(x), expected)
    [gm] = seen.graphs
    functions = [node.target for node in gm.graph.nodes if node.op == "call_function"]
    assert functions == [cd.sin, cd.add, cd.sum]
    assert cd.sin in set(functions)
    assert cd.cos not in functions
    assert seen.inputs[0][0] is x
    assert seen.inputs[0][1] is y
    assert len(calls) == 2  # the first call is traced


@pytest.mark.parametrize("backend", [None, "candelabra", "inductor", "eager", "aot_eager", Seen()])
def test_a_training_step_is_that_of_an_eager_one(backend: Any) -> None:
    """Writes, gradients, buffers, random numbers and the optimizer's step go through every backend."""
    model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 2))
    models = (model, copy.deepcopy(model))
    optimizers = [cd.optim.Adam(m.parameters(), lr=0.02) for m in models]

    def step(model: Any, optimizer: Any, x: cd.Tensor) -> cd.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    steps = (step, cd.compile(step, backend=backend))
    for seed in range(4):
        losses = []
        for run, m, o in zip(steps, models, optimizers, strict=True):
            cd.manual_seed(seed)
            losses.append(run(m, o, cd.randn(7, 5)))
        cd.testing.assert_close(*losses)
    for a, b in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
        cd.testing.assert_close(a, b)


def test_the_backward_pass_is_a_graph_of_its_own() -> None:
    """A compiled module gives the backend two graphs, and gradients are those of eager calls."""
    seen, layer, x = Seen(), nn.Linear(3, 2), cd.randn(4, 3, requires_grad=True)
    compiled = cd.compile(layer, backend=seen)
    for _ in range(3):
        x.grad = None
        compiled(x).pow(2).sum().backward()
        found, x.grad = x.grad, None
        layer(x).pow(2).sum().backward()
        cd.testing.assert_close(found, x.grad)
    assert len(seen.graphs) == 2


def test_each_segment_is_a_graph_at_its_first_time() -> None:
    """A function that reads a value gives the backend one graph for each segment of the branch that is taken."""
    seen = Seen()
    compiled = cd.compile(lambda a, b: a / (a.abs() + 1) * (-b if b.sum() < 0 else b), backend=seen)
    with pytest.warns(UserWarning, match="runs in segments"):
        compiled(cd.ones(5), cd.ones(5))
    for sign in (-1, 1, -1):
        a, b = cd.randn(5), cd.ones(5) * sign
        cd.testing.assert_close(compiled(a, b), a / (a.abs() + 1) * b.abs())
    names = [[n.name for n in gm.graph.nodes if n.op == "call_function"] for gm in seen.graphs]
    assert ["neg", "mul"] in names
    assert ["mul"] in names


def test_a_backend_may_change_the_graph_and_compile_it() -> None:
    """A changed GraphModule can be returned itself, or compiled by the device."""

    def changed(gm: Any) -> Any:
        for node in gm.graph.nodes:
            if node.target == cd.sin:
                with gm.graph.inserting_after(node):
                    node.replace_all_uses_with(gm.graph.call_function(cd.cos, node.args))
                gm.graph.erase_node(node)
        gm.recompile()
        return gm

    x = cd.randn(6)
    for make in (changed, lambda gm: cd._inductor.compile(changed(gm), [x])):
        compiled = cd.compile(lambda x: x.sin() * 2, backend=Seen(make))
        compiled(x)
        for _ in range(3):
            cd.testing.assert_close(compiled(x), x.cos() * 2)


def test_names_of_backends() -> None:
    """A registered backend has a name, which nothing else may take."""
    seen = Seen()
    assert cd.compiler.register_backend(seen, name="seen by a test", tags=("testing",)) is seen
    assert "seen by a test" in cd.compiler.list_backends()
    assert "eager" not in cd.compiler.list_backends()
    assert "seen by a test" not in cd.compiler.list_backends(exclude_tags=("testing",))
    assert "eager" in cd._dynamo.list_backends(None)
    assert cd.compiler.lookup_backend("seen by a test") is seen
    compiled = cd.compile(lambda x: x + 1, backend="seen by a test")
    assert compiled(cd.ones(2)).tolist() == [2, 2]
    assert len(seen.graphs) == 1

    @cd.compiler.register_backend
    def backend_of_a_test(gm: Any, inputs: Any) -> Any:
        return gm.forward

    assert cd._dynamo.lookup_backend("backend_of_a_test") is backend_of_a_test
    with pytest.raises(ValueError, match="the name 'eager' belongs to another backend; pass name="):
        cd.compiler.register_backend(seen, name="eager")
    with pytest.raises(TypeError, match=r"register_backend\(\) expects a function, not int"):
        cd.compiler.register_backend(3)
    with pytest.raises(RuntimeError, match="invalid backend 'nothing': expected a function, or a name among"):
        cd.compile(cd.sin, backend="nothing")
    with pytest.raises(TypeError, match="backend must be a function or a name, not int"):
        cd.compile(cd.sin, backend=3)


def test_modes_and_options() -> None:
    """Modes are PyTorch's names; options are checked and forwarded to a backend of the program."""
    assert set(cd.compiler.list_mode_options()) >= {"default", "reduce-overhead", "max-autotune"}
    assert cd._inductor.list_mode_options("default") == {}
    assert cd.compiler.list_options() == ["fuse", "passes"]
    x = cd.randn(5)
    for given in ({"mode": "max-autotune"}, {"options": {"fuse": False}}):
        compiled = cd.compile(lambda x: x.exp() + 1, **given)
        for _ in range(2):
            cd.testing.assert_close(compiled(x), x.exp() + 1)
    got = []

    def backend(gm: Any, inputs: Any, **options: Any) -> Any:
        got.append(options)
        return gm

    cd.compile(lambda x: x + 1, backend=backend, options={"level": 3})(x)
    cd.compile(lambda x: x + 1, backend=backend, mode="default")(x)
    assert got == [{"options": {"level": 3}}, {"mode": "default"}]
    with pytest.warns(UserWarning, match=r"the setting triton\.cudagraphs of PyTorch's compiler has no effect"):
        cd.compile(cd.sin, options={"triton.cudagraphs": True})
    for wrong, text in (
        ({"mode": "fast"}, "unrecognized mode=fast, should be one of: default"),
        ({"options": {"speed": 1}}, "unexpected option speed, known options are fuse, passes"),
        ({"options": {"fuse": 1}}, "the option fuse expects bool, got int"),
        ({"mode": "default", "options": {"fuse": True}}, "either mode or options can be specified"),
    ):
        with pytest.raises(RuntimeError, match=text):
            cd.compile(cd.sin, **wrong)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"list_mode_options\(\): unrecognized mode=fast"):
        cd.compiler.list_mode_options("fast")


def test_errors_of_a_backend() -> None:
    """What a backend raises or returns wrongly is an error that names it, or ignored if the program says so."""
    x = cd.randn(3)

    def fails(gm: Any, inputs: Any) -> Any:
        raise KeyError("no such thing")

    with pytest.raises(cd.compiler.CompilerError, match="backend='fails' raised:\nKeyError: 'no such thing'"):
        cd.compile(lambda x: x * 2, backend=fails)(x)
    with cd._dynamo.config.patch(suppress_errors=True):
        compiled = cd.compile(lambda x: x * 2, backend=fails)
        assert all(cd.equal(compiled(x), x * 2) for _ in range(2))
    for returned, text in (
        (None, "returned NoneType, expected a function of the graph's inputs"),
        (lambda *_: (), "returned 0 tensors, expected 1"),
        (lambda *_: (cd.ones(4),), r"returned for output 0 candelabra.float32, shape \(4,\), on cpu, expected float32"),
        (lambda *_: (3,), "returned for output 0 3, expected float32"),
    ):
        compiled = cd.compile(lambda x: x * 2, backend=Seen(lambda gm, returned=returned: returned))
        with pytest.raises(RuntimeError, match=text):
            [compiled(x) for _ in range(2)]


def doubled(graph: Any) -> None:
    """A pass: replace sin by twice its value."""
    for node in graph.nodes:
        if node.target == cd.sin:
            with graph.inserting_after(node):
                twice = graph.call_function(cd.mul, (node, 2))
            node.replace_all_uses_with(twice)
            twice.update_arg(0, node)


def test_passes_change_the_graphs_that_the_device_compiles() -> None:
    """A pass of the options, of the settings, or of PyTorch's settings, is applied to each graph."""
    x = cd.randn(4)

    def f(x: cd.Tensor) -> cd.Tensor:
        return x.sin() + 1

    compiled = cd.compile(f, options={"passes": [doubled]})
    compiled(x)
    cd.testing.assert_close(compiled(x), x.sin() * 2 + 1)
    with cd.compiler.config.patch(passes=[doubled]):
        compiled = cd.compile(f)
        compiled(x)
        cd.testing.assert_close(compiled(x), x.sin() * 2 + 1)
    cd._inductor.config.post_grad_custom_post_pass = doubled
    try:
        assert cd.compiler.config.passes == (doubled,)
        compiled = cd.compile(f)
        compiled(x)
        cd.testing.assert_close(compiled(x), x.sin() * 2 + 1)
    finally:
        cd._inductor.config.post_grad_custom_post_pass = None
    assert cd.compiler.config.passes == ()


def test_settings_are_checked() -> None:
    """A setting of another name or type is an error, in PyTorch's modules too."""
    with pytest.raises(AttributeError, match=r"candelabra\.compiler\.config has no setting 'speed'"):
        cd.compiler.config.speed = 1
    with pytest.raises(TypeError, match="recompile_limit: expected a positive int, got 0"):
        cd.compiler.config.recompile_limit = 0
    with pytest.raises(TypeError, match="suppress_errors: expected bool, got 1"):
        cd.compiler.config.suppress_errors = 1  # type: ignore[assignment]
    for module in (cd._dynamo.config, cd._inductor.config):
        with pytest.raises(AttributeError, match="config has no setting 'speed'"):
            module.speed = 1
        with pytest.raises(AttributeError, match="config has no setting 'speed'"):
            _ = module.speed
    with pytest.warns(UserWarning, match=r"the setting trace\.graph_diagram of PyTorch's compiler has no effect"):
        cd._inductor.config.trace.graph_diagram = True
    assert cd._inductor.config.trace.graph_diagram is True

    @cd.compiler.config.patch(recompile_limit=2)
    def limit() -> int:
        return cd.compiler.config.cache_size_limit

    assert limit() == 2
    assert cd._dynamo.config.recompile_limit == 8


def test_the_limit_of_programs_is_a_setting() -> None:
    """After as many kinds of calls as the limit says, further ones run eagerly."""
    compiled = cd.compile(lambda x: x + 1)
    with cd._dynamo.config.patch(cache_size_limit=2), pytest.warns(UserWarning, match="it was compiled 2 times"):
        assert [compiled(cd.ones(n)).numel() for n in range(1, 5)] == [1, 2, 3, 4]
    assert len(compiled.programs) == 2


def test_patterns_are_replaced_whatever_the_shapes_are() -> None:
    """A pattern matches by its operators and numbers, is counted, and keeps what does not match."""
    patterns = cd.compiler.PatternPass()
    patterns.register(
        lambda x, w: (x @ w).relu() + 1, lambda x, w: (x @ w).relu() + 1.5, [cd.randn(2, 2), cd.randn(2, 2)]
    )
    cd._dynamo.utils.counters.clear()

    def f(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
        return ((x @ w).relu() + 1) * ((w @ x).relu() + 2)

    compiled, x, w = cd.compile(f, options={"passes": [patterns]}), cd.randn(3, 3), cd.randn(3, 3)
    compiled(x, w)
    cd.testing.assert_close(compiled(x, w), ((x @ w).relu() + 1.5) * ((w @ x).relu() + 2))
    assert cd.compiler.counters["inductor"]["pattern_matcher_count"] == 1


def test_patterns_by_pytorchs_names_and_their_errors() -> None:
    """``register_replacement`` registers in a pass; functions that no pattern can be are refused."""
    from candelabra._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement

    patterns, x = PatternMatcherPass(), cd.randn(3)
    assert register_replacement(lambda x: x.exp().log(), lambda x: x.clone(), [x], fwd_only, patterns)
    compiled = cd.compile(lambda x: x.exp().log() * 2, options={"passes": [patterns]})
    compiled(x)
    assert cd.equal(compiled(x), x * 2)
    with pytest.raises(NotImplementedError, match=r"trace_fn=sin is not supported.*pass fwd_only"):
        register_replacement(cd.exp, cd.exp, [x], cd.sin, patterns)
    with pytest.raises(ValueError, match="returns 2 tensors, expected one"):
        patterns.register(lambda x: (x + 1, x + 2), cd.sin, [x])
    with pytest.raises(ValueError, match="takes 1 different tensors and uses 2; pass all tensors"):
        patterns.register(lambda y: y + x, cd.sin, [cd.randn(3)])
    narrow = cd.compiler.PatternPass()
    narrow.register(lambda x: x.exp(), lambda x: x.exp().sum(), [x])
    with pytest.raises(ValueError, match=r"the replacement returns float32\[\], expected float32\[3\] as the pattern"):
        cd.compile(lambda x: x.exp() * 2, options={"passes": [narrow]})(x)
