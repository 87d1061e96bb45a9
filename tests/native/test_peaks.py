"""The peak memory of compiled training steps on the device ``cpu``, whose contributed kernels count their memory."""

from __future__ import annotations

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import Tensor
from candelabra.graph import compile_graph, trace
from candelabra_native import planning
from candelabra_native.recorded import record

from benchmarks.memory import LIMIT, compared, peaks, setup_of

CPU = cd.device("cpu")
RESNET = (
    setup_of("ResNet")
    .replace("sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]", "sizes = [(32, 32, 1), (32, 64, 2)]")
    .replace("sizes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]", "")
    .replace("normed(3, 64, 3, 1)", "normed(3, 32, 3, 1)")
    .replace("nn.Linear(512, 10)", "nn.Linear(64, 10)")
)
"""Two blocks of the residual network, one of them with a convolution in its shortcut."""
SETUPS = {"MLP": setup_of("MLP"), "CNN": setup_of("CNN"), "GPT": setup_of("GPT"), "ResNet": RESNET}


@pytest.mark.parametrize("name", SETUPS)
def test_a_compiled_training_step_needs_no_more_memory_than_an_eager_one(name: str) -> None:
    """Neither the calls that are traced nor later ones have a larger peak."""
    found = compared(SETUPS[name], CPU, 4)
    assert max(found.ratios) <= LIMIT, found


@pytest.mark.parametrize("name", ["MLP", "CNN", "GPT"])
def test_a_compiled_module_needs_no_more_memory_than_an_eager_one(name: str) -> None:
    """Its backward pass releases what was saved after the last use. While it is traced, its graph is kept as well."""
    found = compared(SETUPS[name], CPU, 3, "model")
    assert max(found.ratios[1:]) <= LIMIT, found


def test_a_plan_releases_arrays_and_takes_memory_when_launches_need_it() -> None:
    """So a chain of products has the peak of the eager call, of which each operand is released."""

    def program(x: Tensor) -> Tensor:
        for _ in range(6):
            x = x @ x
        return x

    x = cd.eye(400)
    run = compile_graph(trace(program, x))
    assert len(run.graph.nodes) == 6  # type: ignore[attr-defined]
    size = x.numel() * x.element_size()
    assert 2 * size <= min(peaks(lambda: run(x._payload), CPU, 2)) - counted() <= 2 * size * 9 / 8


def counted() -> int:
    """Return the bytes that are allocated now."""
    return int(cd.cpu.memory_stats()["allocated"])


def test_launches_that_may_report_errors_have_plans_of_their_own() -> None:
    """The nodes of a plan run again to raise the error, so such a plan keeps its arrays."""
    rows, target = cd.arange(400), cd.arange(400) % 300

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x @ x).index_add(0, rows, x)  # no plan runs index_add
        return (y @ x) @ x, F.nll_loss(x @ y, target, reduction="none")[:, None] * (x @ y.t())

    x = cd.eye(400)
    graph = trace(program, x)
    recordings = {node: found for node in graph if (found := record(node)) is not None}
    cuts = planning._cuts(graph, recordings, {})
    assert [node.name for node in graph if node in cuts] == ["class_losses", "basic_index"]
    compiled = cd.compile(program, fullgraph=True)
    expected = program(x)
    for _ in range(2):
        for got, want in zip(compiled(x), expected, strict=True):
            assert (got == want).all()
    target[7] = 400
    with pytest.raises(IndexError, match="Target 400 is out of bounds"):
        compiled(x)
