"""What a compiled function keeps alive, and for how long."""

from __future__ import annotations

import gc
from collections.abc import Callable
from weakref import ref

import candelabra as cd
import pytest
from candelabra._graph.tracing import GraphTracer, PayloadValues
from candelabra.graph import Graph, Node, Value, fuse, runner, trace

from benchmarks.memory import LIMIT, Peaks, compared, peaks, setup_of

SIZE = 1 << 16


def chain(x: cd.Tensor) -> cd.Tensor:
    """Compute many tensors, each of which only the next one needs."""
    for _ in range(20):
        x = (x * 1.5).sin()
    return x


def test_a_traced_call_frees_what_the_function_has_freed(counting: cd.device) -> None:
    """It has the peak of the eager call, and so has each later call."""
    x = cd.ones(SIZE, device=counting)
    (eager,) = peaks(lambda: chain(x), counting, 1)
    compiled = cd.compile(chain, fullgraph=True)
    traced, *later = peaks(lambda: compiled(x), counting, 4)
    assert traced == eager == 4 * SIZE * 4
    assert max(later) == 3 * SIZE * 4  # the user's function has a variable


def test_a_traced_step_frees_saved_values_and_old_gradients(counting: cd.device) -> None:
    """The first calls have no gradients before them; later ones release them where the function does."""
    x = cd.ones(SIZE, device=counting, requires_grad=True)

    def step() -> None:
        x.grad = None
        chain(x).sum().backward()

    eager = peaks(step, counting, 4)
    x.grad = None
    assert max(Peaks(eager, peaks(cd.compile(step, fullgraph=True), counting, 4)).ratios) <= LIMIT


def test_a_compiled_training_step_needs_no_more_memory_than_an_eager_one(counting: cd.device) -> None:
    """Neither the calls that are traced nor later ones have a larger peak."""
    assert max(compared(setup_of("MLP"), counting, 4).ratios) <= LIMIT


def test_a_compiled_module_releases_saved_values_as_its_backward_pass_goes_on(counting: cd.device) -> None:
    """With retain_graph=True they stay, so that a second pass gives the same gradients."""
    x = cd.ones(SIZE, device=counting, requires_grad=True)
    found = []
    for function in (chain, cd.compile(chain, fullgraph=True)):

        def step(function: Callable[[cd.Tensor], cd.Tensor] = function) -> None:
            x.grad = None
            function(x).sum().backward()

        found.append(peaks(step, counting, 3)[1:])
    assert max(Peaks(*found).ratios) <= LIMIT
    assert x.grad is not None
    once = x.grad.clone()
    loss = function(x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert (x.grad == 3 * once).all()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_a_gradient_that_a_trace_has_seen_dies_with_its_tensor() -> None:
    """A program that adds to a gradient refers to the tensor's gradient of each call, not to that of the trace."""
    x = cd.ones(3, requires_grad=True)

    @cd.compile
    def accumulate() -> None:
        (x * 2).sum().backward()

    accumulate()
    accumulate()
    assert x.grad is not None
    gone = ref(x.grad)
    x.grad = None
    gc.collect()
    assert gone() is None
    accumulate()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]


def test_values_of_payloads_are_those_of_objects() -> None:
    """A payload that is gone is unknown, also where another one has its id; one without weak references is kept."""

    class Payload:
        """An array."""

    class Slotted:
        """An array that cannot be referred to weakly."""

        __slots__ = ()

    values, known = PayloadValues(), []
    for _ in range(100):
        payload = Payload()
        known.append(payload in values)
        values[payload] = Value(None)
        del payload
    assert not any(known)
    slotted, value = Slotted(), Value(None)
    values[slotted] = value
    assert values.get(slotted) is value
    values.forget(value.memory)
    assert values.get(slotted) is None
    assert Slotted() not in values


def test_a_trace_refers_to_results_weakly() -> None:
    """Results die where the program drops them, and the graph is that of all calls."""
    alive: list[bool] = []

    def program(x: cd.Tensor) -> cd.Tensor:
        y = x.exp()
        gone = ref(y._payload)
        y = y.sin()
        alive.append(gone() is not None)
        return y

    assert [node.name for node in trace(program, cd.ones(3))] == ["exp", "sin"]
    assert alive == [False]
    assert GraphTracer().payloads.get(object()) is None


def test_a_kernel_that_takes_a_list_is_the_last_one_that_refers_to_its_arguments() -> None:
    """What the graph or a later node uses stays alive."""
    x = cd.eye(32)
    graph = fuse(trace(lambda x: ((x.exp() + 1) @ x).cos() + x, x), lambda node: node.name in ("exp", "add", "cos"))
    references: list[bool] = []

    def kernel_of(node: Node) -> object:
        if not isinstance(node.op, Graph):
            return None
        run = runner(node.op)

        def kernel(payloads: list[object]) -> object:
            results = run(*payloads)
            gone = ref(payloads[0])
            payloads.clear()
            references.append(gone() is not None)
            return results[0]

        kernel.takes_list = True  # type: ignore[attr-defined]
        return kernel

    (out,) = runner(graph, kernel_of)(x._payload)  # type: ignore[arg-type]
    assert cd.allclose(cd.from_numpy(out), ((x.exp() + 1) @ x).cos() + x)
    assert references == [True, False]  # the first one reads the graph's input
