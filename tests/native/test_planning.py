"""Plans: sequences of nodes whose launches run in one call, and the calls in C that run them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import numpy as np
import pytest
from candelabra import Tensor
from candelabra.graph import Graph, compile_graph, trace
from candelabra_clike.recording import RecordedBlock, RecordedNode
from candelabra_native import planning
from candelabra_native.launch._launch import allocate, plan, reset_peak, statistics
from candelabra_native.planning import ALIGNMENT, arranged, planned
from candelabra_native.recorded import record

from tests import fused_programs as programs
from tests.native.compiled import launch

CPU = cd.device("cpu")


# -- calls ------------------------------------------------------------------------------------------------------------
def test_launches_run_in_turn_at_their_places() -> None:
    """Buffers are blocks with offsets in bytes; a later launch overwrites what an earlier one wrote."""
    store = launch("store", "bQ")
    run = plan(((store, 1, ((0, 8), 5)), (store, 1, ((1, 0), 6)), (store, 1, ((0, 8), 7))), (None, None), ())
    first, second = np.zeros(3, np.uint64), bytearray(8)
    assert run([first, second]) == ()
    assert first.tolist() == [0, 7, 0]
    assert second[0] == 6
    other = np.zeros(3, np.uint64)
    assert run([other, second]) == ()
    assert other.tolist() == [0, 7, 0]


def test_all_work_items_of_a_launch_run() -> None:
    """The count of work-items is that of the plan, also where it is 0."""
    visit = launch("visit", "bb")
    seen, totals = np.zeros(100, np.uint8), np.zeros(100, np.uint64)
    run = plan(((visit, 100, ((0, 0), (1, 0))), (visit, 0, ((0, 0), (1, 0)))), (None, None), ())
    assert run([seen, totals]) == ()
    assert (seen == 1).all()
    assert (totals == 100).all()


def test_arrays_of_another_layout_stop_the_plan() -> None:
    """Nothing is launched if strides, the number of dims or the alignment differ. Dims of one element have any
    stride.
    """
    run = plan(((launch("store", "bQ"), 1, ((1, 0), 9)),), (((24, 8), 8, 0), None), ())
    written = np.zeros(1, np.uint64)
    for other in (np.zeros((2, 4)), np.zeros((3, 2)).T, np.zeros(3), np.zeros(50, "u1")[1:49].view("f8").reshape(2, 3)):
        arrays = [other, written]
        assert run(arrays) is None
        assert arrays[0] is other
        assert not written
    assert run([np.zeros((2, 3)), written]) == ()
    assert written == 9
    assert run([np.zeros((4, 3))[:1], written]) == ()


def test_results_are_blocks_of_memory() -> None:
    """Each call has results of its own, and gives the memory between the launches back."""
    store = launch("store", "bQ")
    launches = ((store, 1, ((0, 0), 5)), (store, 1, ((1, 8), 6)), (store, 1, ((2, 0), 7)))
    run = plan(launches, (), ((8, 0, -1), (1 << 20, 1, 1), (16, 2, -1)))
    before = statistics()["allocated"]
    first, second = run([]) or ()
    assert statistics()["allocated"] == before + 24
    others = run([]) or ()
    assert [memoryview(block).nbytes for block in (first, second)] == [8, 16]
    assert [bytes(block)[0] for block in (first, second, *others)] == [5, 7, 5, 7]
    del first, second, others
    assert statistics()["allocated"] == before


def test_memory_of_launches_that_follow_each_other_is_the_same() -> None:
    """Memory is taken before its first launch and given back after its last one, so a plan needs the most of any."""
    store, size = launch("store", "bQ"), 1 << 20
    launches = tuple((store, 1, ((i, 0), i)) for i in range(5))
    run = plan(launches, (), tuple((size, i, min(i + 1, 4)) for i in range(5)))
    reset_peak()
    before = statistics()["allocated"]
    assert run([]) == ()
    assert statistics()["peak"] == before + 2 * size


def test_arrays_are_released_after_their_last_launch() -> None:
    """The list has None in their place, and their memory serves later launches."""
    store, size = launch("store", "bQ"), 1 << 20
    launches = ((store, 1, ((0, 0), 5)), (store, 1, ((1, 0), 6)), (store, 1, ((2, 0), 7)))
    run = plan(launches, (((8,), 8, 0), ((8,), 8, -1)), ((size, 2, -1),))
    reset_peak()
    before = statistics()["allocated"]
    arrays = [np.ndarray(size // 8, "u8", allocate(size)) for _ in range(2)]
    (result,) = run(arrays) or ()
    assert arrays[0] is None
    assert arrays[1][0] == 6
    assert statistics()["peak"] == before + 2 * size == statistics()["allocated"]
    assert memoryview(result).nbytes == size


def test_memory_that_is_missing_is_an_error() -> None:
    """What the call has taken before is given back."""
    store = launch("store", "bQ")
    run = plan(((store, 1, ((0, 0), 5)), (store, 1, ((1, 0), 6))), (), ((1 << 20, 0, -1), (1 << 60, 1, 1)))
    before = statistics()["allocated"]
    with pytest.raises(cd.OutOfMemoryError, match=f"cannot allocate {1 << 60} bytes on the CPU"):
        run([])
    assert statistics()["allocated"] == before


@pytest.mark.parametrize(
    ("launches", "layouts", "memory", "error", "message"),
    [
        (((len, 1, ()),), (), (), TypeError, "plan.. takes launches of kernels, got <built-in function len>"),
        (((1, ()),), (), (), TypeError, r"a launch of a plan is \(kernel, count, arguments\), got \(1, \(\)\)"),
        (("store", 1, (3, 4)), (), (), TypeError, "kernel store: argument 0 .*of a plan is .block, offset., got 3"),
        (("store", 1, ((0, 0, 0), 4)), (None,), (), TypeError, r"a buffer of a plan is \(block, offset\)"),
        (("store", 1, ((2, 0), 4)), (None,), ((1, 0, 0),), ValueError, "argument 0 .*block 2 is not one of the 2"),
        (("store", 1, ((0, 0),)), (None,), (), TypeError, "kernel store takes 2 arguments, got 1"),
        (("store", 1, ((0, 0), -1)), (None,), (), OverflowError, "kernel store: argument 1 .*-1 is out of the range"),
        (("store", -1, ((0, 0), 1)), (None,), (), OverflowError, "store: the count of work-items: -1 is out of the"),
        ((), (((8,), 0, 0),), (), ValueError, "an alignment is at least 1, got 0"),
        ((), ((8, 8, 0),), (), TypeError, r"a layout of a plan is \(strides, alignment, last launch\)"),
        ((), ((("x",), 8, 0),), (), TypeError, "an integer is required"),
        ((), (), (8,), TypeError, r"memory of a plan is \(bytes, first launch, last launch\), got 8"),
        ((), (), ((8, 0),), TypeError, r"memory of a plan is \(bytes, first launch, last launch\)"),
        ((), (), ((8, 0, 0),), ValueError, "8 bytes cannot be used by the launches 0 to 0 of 0"),
        (("store", 1, ((0, 0), 1)), (), ((8, 1, -1),), ValueError, "8 bytes cannot be used by the launches 1 to -1 of"),
        (("store", 1, ((0, 0), 1)), (), ((8, 0, -2),), ValueError, "8 bytes cannot be used by the launches 0 to -2 of"),
        (("store", 1, ((0, 0), 1)), (), ((-8, 0, 0),), ValueError, "-8 bytes cannot be used by the launches 0 to 0 of"),
        ([], (), (), TypeError, "must be tuple, not list"),
    ],
)  # fmt: skip
def test_plans_are_checked(launches: Any, layouts: Any, memory: Any, error: type[Exception], message: str) -> None:
    """What cannot be right is refused when the plan is made."""
    if launches and launches[0] == "store":
        launches = ((launch("store", "bQ"), *launches[1:]),)
    with pytest.raises(error, match=message):
        plan(launches, layouts, memory)


def test_blocks_are_checked_and_released() -> None:
    """A plan takes its number of arrays, and holds none of them after a call, also after one that raises."""
    run = plan(((launch("store", "bQ"), 1, ((0, 0), 9)),), (None, None), ())
    with pytest.raises(TypeError, match=r"the plan takes a list of 2 arrays, got \[0\]"):
        run([0])
    with pytest.raises(TypeError, match=r"the plan takes a list of 2 arrays, got \(0, 1\)"):
        run((0, 1))  # type: ignore[arg-type]
    block = bytearray(8)
    references = sys.getrefcount(block)
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'int'"):
        run([block, 3])
    assert run([block, bytearray(1)]) == ()
    block.append(1)
    assert sys.getrefcount(block) == references


def test_the_interpreter_goes_on_while_a_plan_runs() -> None:
    """All launches run without the interpreter lock."""
    flags = np.zeros(2, np.uint64)
    hold = launch("hold", "b")
    thread = threading.Thread(target=plan(((hold, 1, ((0, 0),)),), (None,), ()), args=([flags],))
    thread.start()
    while not flags[0]:
        pass
    flags[1] = 1
    thread.join()


# -- memory -----------------------------------------------------------------------------------------------------------
def test_blocks_that_live_at_the_same_time_do_not_overlap(rng: np.random.Generator) -> None:
    """Each block is aligned, and others reuse its place after its last use."""
    blocks = [RecordedBlock(int(size)) for size in rng.integers(0, 5000, 60)]
    lives = {block: (i, int(i + rng.integers(0, 9))) for i, block in enumerate(blocks)}
    offsets, total = arranged(lives)
    for one in blocks:
        assert offsets[one] % ALIGNMENT == 0
        assert offsets[one] + one.nbytes <= total
        for other in blocks:
            together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
            if one is not other and together and one.nbytes and other.nbytes:
                assert offsets[one] + one.nbytes <= offsets[other] or offsets[other] + other.nbytes <= offsets[one]
    assert total < sum(block.nbytes for block in blocks) / 2


# -- graphs -----------------------------------------------------------------------------------------------------------
def block(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Return what a layer of a network computes: products, views between them, rows, and two results of one memory."""
    parts = (x @ w).split(100, 1)
    heads = [part.reshape(-1, 4, 25).transpose(0, 1) for part in parts]
    attended = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(0, 1).reshape(x.shape)
    y = F.layer_norm(x + attended @ v, (100,))
    z = cd.cat([y, attended], 1)
    return z, z[3:, 50:], F.gelu(y @ v)


def between(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Return results around a node that no plan runs, and views of an operand."""
    y = F.softmax(x @ v, 1)
    row = x.t()[7]
    z = y.index_add(0, cd.arange(len(x)), x)
    return F.softmax(z @ v, 1), row, row.expand(3, -1), y


def steps(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Return a loss with its gradients, after in-place writes."""
    v = v.detach().requires_grad_()
    loss = F.cross_entropy(F.layer_norm(x @ v, (100,)) @ v, cd.arange(len(x)) % 100)
    (gradient,) = cd.autograd.grad(loss, v)
    return (x @ gradient).mul_(2).add_(loss.detach())


def cut_result(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Return a slice of a plan's result, and views of the slice that are made after the plan."""
    rows = F.softmax(x @ v, 1)[3:, 1:]
    z = x.index_add(0, cd.arange(len(x)), x)
    return z, rows.t(), rows[2], rows


PROGRAMS: dict[str, Callable[..., Any]] = {"block": block, "between": between, "cut_result": cut_result, "steps": steps}


@pytest.fixture
def operands() -> list[Tensor]:
    """Operands of the programs, for which no call is small."""
    shapes = ((900, 100), (100, 300), (100, 100))
    return [programs.numbers(shape, cd.float32, CPU) for shape in shapes]


def planned_nodes(program: Callable[..., Any], operands: list[Tensor]) -> list[list[str]]:
    """Return the names of the nodes of each plan of a program."""
    graph = trace(program, *operands)
    recordings = {node: found for node in graph.nodes if (found := record(node)) is not None}
    _, functions = planned(graph, recordings, {})
    return [[inner.name for inner in node.op.nodes] for node in functions if isinstance(node.op, Graph)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_gives_the_bits_of_single_kernels(name: str, operands: list[Tensor]) -> None:
    """Every call has memory of its own: results of an earlier one stay as they are."""
    program = PROGRAMS[name]
    run = compile_graph(trace(program, *operands))
    doubled = [x * 2 for x in operands]
    results = [run(*[x._payload for x in given]) for given in (operands, doubled)]
    for found, given in zip(results, (operands, doubled), strict=True):
        expected = program(*given)
        for got, want in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert got.strides == want.numpy(force=True).strides
            assert got.tobytes() == want.numpy(force=True).tobytes()


def test_consecutive_nodes_are_one_plan(operands: list[Tensor]) -> None:
    """Views belong to it. Nodes that check values, or write in place, are between plans."""
    assert len(planned_nodes(block, operands)) == 1
    assert {"matmul", "attention", "transpose", "cat", "normalize"} <= {*planned_nodes(block, operands)[0]}
    first, second = planned_nodes(between, operands)
    assert first[:2] == second == ["matmul", "softmax"]
    assert not {"index_add", "arange"} & {*first}


def test_arrays_of_other_strides_are_served_by_single_kernels(operands: list[Tensor]) -> None:
    """They have the same values, up to the rounding of other kernels."""
    run = compile_graph(trace(block, *operands))
    payloads = [x._payload for x in operands]
    others = [x[::-1].copy()[::-1] for x in payloads]
    for got, want in zip(run(*others), run(*payloads), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_an_error_in_a_plan_is_that_of_the_operator(operands: list[Tensor]) -> None:
    """The operator raises it, and the next call is not affected."""

    def program(x: Tensor, target: Tensor) -> Tensor:
        return F.softmax(F.nll_loss(F.log_softmax(x, 1), target, reduction="none")[:, None] * F.softmax(x, 1), 1)

    x, target = operands[0], cd.arange(len(operands[0])) % 100
    compiled = cd.compile(program)
    expected = compiled(x, target)
    wrong = target.clone()
    wrong[5] = 100
    with pytest.raises(IndexError, match="Target 100 is out of bounds"):
        compiled(x, wrong)
    assert (compiled(x, target) == expected).all()


def test_threads_run_a_plan_at_the_same_time(operands: list[Tensor]) -> None:
    """Nothing of a plan belongs to a call."""
    run = compile_graph(trace(block, *operands))
    given = [[(x * factor)._payload for x in operands] for factor in (1, 2, 3, 4)]
    expected = [[out.tobytes() for out in run(*payloads)] for payloads in given]
    found: list[Any] = [None] * 4

    def repeat(i: int) -> None:
        found[i] = [[out.tobytes() for out in run(*given[i])] for _ in range(5)]

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each == [want] * 5 for each, want in zip(found, expected, strict=True))


def test_a_result_in_place_of_an_array_from_outside_is_no_part_of_a_plan(operands: list[Tensor]) -> None:
    """A plan makes arrays over its own memory only."""
    graph = trace(lambda x, w, v: F.softmax(F.softmax(x @ v, 1) @ v, 1), *operands)
    recordings: dict[Any, RecordedNode] = {node: found for node in graph.nodes if (found := record(node)) is not None}
    product, softmax = graph.nodes[:2]
    runs = list(planning._runs(graph, recordings, {softmax: {0: 0}}))
    assert [len(run) for run in runs] == [4]
    del recordings[product]
    runs = list(planning._runs(graph, recordings, {softmax: {0: 0}}))
    assert [len(run) for run in runs] == [1, 1, 2]
