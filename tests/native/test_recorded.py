"""Prepared launches: nodes of graphs on the device cpu whose kernels in C are recorded once."""

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import Tensor
from candelabra.graph import Graph, compile_graph, default_kernel, trace
from candelabra.library import record
from candelabra_cpu.backend import storage_of
from candelabra_native import recorded

from tests import fused_programs as programs

CPU = cd.device("cpu")


def losses(x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Return the losses of classes, for each row and together."""
    logs = F.log_softmax(x, 1)
    return logs, F.nll_loss(logs, target), F.nll_loss(logs, target, reduction="none")


def shapes(x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Return results of several shapes and strides, some of one operand used twice, and one of a list."""
    return x.t() @ x, cd.cat([x, x], 1), F.conv2d(x[None, None], x[None, None, :3, :3]), x.t().var(0), x.cumsum(0)


PROGRAMS: dict[str, Callable[..., Any]] = {"losses": losses, "shapes": shapes}


def prepared(graph: Graph) -> list[str]:
    """Return the names of the nodes whose launches are prepared."""
    return [node.name for node in graph.nodes if recorded.recorded(node, default_kernel(node))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [9, 400])
def test_prepared_launches_give_the_bits_of_single_kernels(name: str, size: int) -> None:
    """They are the launches of an eager call, for new memory at each call."""
    x, target = programs.numbers((size, 60), cd.float32, CPU), programs.numbers((size,), cd.int64, CPU).abs() % 60
    program = PROGRAMS[name]
    graph = trace(program, x, target)
    assert prepared(graph)
    run = compile_graph(graph)
    first = run(x._payload, target._payload)
    second = run((x * 2)._payload, target._payload)
    for results, operand in ((first, x), (second, x * 2)):
        for got, want in zip(results, program(operand, target), strict=True):
            assert got.tobytes() == want.numpy().tobytes()


def test_small_calls_of_the_owner_are_not_prepared() -> None:
    """A compiled function gives the bits of eager calls, which NumPy serves below a size."""

    def program(x: Tensor) -> Tensor:
        return x.sum(0)

    assert prepared(trace(program, cd.ones(8, 8))) == []
    assert prepared(trace(program, cd.ones(80, 80))) == ["sum"]


def test_calls_that_need_values_are_not_prepared() -> None:
    """Checked indices, numbers of the call, in-place writes and views have kernels that run as in eager calls."""

    def program(x: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        return F.dropout(x, 0.5), x.clone().exp_(), x.t(), x.index_add(0, rows, x)

    x = cd.ones(1000, 600)
    names = prepared(trace(program, x, cd.arange(1000)))
    assert {"random_uniform", "exp", "t", "index_add"}.isdisjoint(names)


def test_draws_by_probabilities() -> None:
    """A draw with given numbers is prepared on the array of probabilities, and draws what an eager call draws."""
    op = record("random_bernoulli")
    graph = trace(lambda p: op(p, (3, 700), 5, 7, device=CPU), p := cd.rand(3, 700))
    assert (compile_graph(graph)(p._payload)[0] == op(p, (3, 700), 5, 7, device=CPU)._payload).all()


def test_other_strides_than_those_of_the_trace() -> None:
    """The kernel that served the node serves them."""
    x = programs.numbers((90, 70), cd.float32, CPU)
    run = compile_graph(trace(lambda x: F.softmax(x, 1), x))
    other = x._payload[::-1].copy()[::-1]
    assert abs(run(other)[0] - run(x._payload)[0]).max() < 1e-6


def test_an_error_that_a_prepared_kernel_reports() -> None:
    """The owner's kernel raises it, and the next call is not affected."""
    x, target = cd.zeros(5, 4), cd.tensor([0, 1, 2, 3, 0])
    loss = cd.compile(lambda x, target: F.cross_entropy(x, target))
    loss(x, target)
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        loss(x, cd.tensor([0, 1, 7, 3, 0]))
    assert loss(x, target).isfinite()


def test_views_of_contiguous_arrays() -> None:
    """They share the memory of what they show, also where a view is written."""

    def program(x: Tensor) -> tuple[Tensor, ...]:
        whole = x * 2
        part = whole[1:, 2:]
        part.t().add_(1)
        return whole, part.t(), whole.reshape(-1)[3:].expand(2, -1), whole.t()[1]

    x = programs.numbers((40, 50), cd.float32, CPU)
    run = compile_graph(trace(program, x))
    expected = [out.numpy() for out in program(x)]
    for _ in range(2):
        results = run(x._payload)
        for got, want in zip(results, expected, strict=True):
            assert got.strides == want.strides
            assert (got == want).all()
        assert len({id(storage_of(got)) for got in results}) == 1


@pytest.mark.parametrize(("shape", "launches"), [((768, 128), 1), ((768, 512), 1), ((40_000, 64), 2)])
def test_columns_are_split_into_several_parts_or_none(shape: tuple[int, int], launches: int) -> None:
    """Parts of columns take another launch, which combines them, so there are several of them or none."""
    (node,) = trace(lambda x: x.sum(0), cd.ones(*shape)).nodes
    found = recorded.record(node)
    assert found is not None
    assert sum(step.__class__ is tuple for step in found.steps) == launches
