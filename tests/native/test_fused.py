"""Fused kernels of compiled functions on the device cpu."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.graph import Graph, Node, compile_graph, trace
from candelabra_clike import Source
from candelabra_clike.cache import temporary_folder
from candelabra_clike.fusion import fused as grouped
from candelabra_clike.fusion import is_fusible
from candelabra_native import compiling, finding, fused
from candelabra_native.engine import ENGINE
from candelabra_native.fused import ADVICE

from tests import fused_programs as programs

CPU = cd.device("cpu")


@pytest.mark.parametrize("layout", programs.LAYOUTS)
def test_a_chain_of_any_layout(layout: str) -> None:
    """One kernel computes what the kernels of the operators compute, and its result has the same strides."""
    assert programs.check(programs.chain, *programs.LAYOUTS[layout](CPU)) == [9]


@pytest.mark.parametrize("first", ["contiguous", "transposed"])
def test_results_of_two_layouts(first: str) -> None:
    """One kernel writes a contiguous and a transposed result: tiles transpose what they read only."""
    x, y = programs.LAYOUTS["transposed"](CPU)
    assert [x.exp().is_contiguous(), (y + x).is_contiguous()] == [False, True]

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        grown = x.exp()
        total = y + grown
        return (total, grown) if first == "contiguous" else (grown, total)

    assert programs.check(program, x, y) == [2]


@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
@pytest.mark.parametrize("size", [1, 8, 80])
def test_results_in_place_of_scans(size: int, d: dtype) -> None:
    """An operand that dies becomes the result; results of earlier calls, views and other operands keep their values."""
    programs.check(programs.after_scans, *[programs.numbers((size, size), d, CPU, seed) for seed in range(2)])


@pytest.mark.parametrize(("size", "expected"), [(16, ["cumsum", "tanh"]), (128, ["cumsum", "tanh"])])
def test_a_large_result_of_one_operator_is_written_in_place(size: int, expected: list[str]) -> None:
    """It is worth a kernel of its own; a small one, and one whose operand is used later, is not."""

    def dying(x: Tensor) -> Tensor:
        return x.cumsum(0).tanh()

    def returned(x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.cumsum(0)
        return total, total.tanh()

    x = programs.numbers((size, size), cd.float32, CPU) * 0.1
    for program, alone in ((dying, size == 128), (returned, False)):
        nodes = grouped(trace(program, x)).nodes
        assert [node.name for node in nodes] == expected
        assert [isinstance(node.op, Graph) for node in nodes] == [False, alone]
    if size == 128:
        assert programs.check(dying, x) == [1]


def test_a_dead_operand_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is allocated for a result that takes that of an operand, and a wrong plan would be seen."""

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.cumsum(0)
        return (total + 1).exp(), total.cumsum(1)

    def in_place_of_the_sum(graph: Graph) -> dict[Node, dict[int, int]]:
        return {node: {0: 0} for node in graph if isinstance(node.op, Graph)}

    x = programs.numbers((80, 80), cd.float32, CPU) * 0.1
    programs.check(program, x)
    monkeypatch.setattr(fused, "memory_plan", in_place_of_the_sum)
    with pytest.raises(AssertionError, match="the values are not close"):
        programs.check(program, x)


@pytest.mark.parametrize("name", programs.FLOATING)
@pytest.mark.parametrize("d", [cd.float32, cd.float64, cd.float16, cd.bfloat16], ids=str)
def test_programs_of_floating_dtypes(name: str, d: dtype) -> None:
    """Half types are rounded between operators, as single kernels store them."""
    x, y = (programs.numbers((13, 17), d, CPU, seed) for seed in range(2))
    programs.check(programs.FLOATING[name], x, y)


@pytest.mark.parametrize("d", [cd.int8, cd.uint8, cd.int16, cd.uint16, cd.int32, cd.uint32, cd.int64], ids=str)
def test_programs_of_integers(d: dtype) -> None:
    """Integers wrap around in every dtype."""
    programs.check(programs.integers, *[programs.numbers((9, 31), d, CPU, seed) for seed in range(2)])


@pytest.mark.parametrize("d", [cd.complex64, cd.complex128], ids=str)
def test_programs_of_complex_numbers(d: dtype) -> None:
    """Complex numbers are computed by the functions of the library."""
    programs.check(programs.complex_numbers, *[programs.numbers((9, 31), d, CPU, seed) for seed in range(2)])


@pytest.mark.parametrize("name", ["chain", "several_outputs", "selections"])
def test_special_values(name: str) -> None:
    """NaN, infinities, zeros of both signs and subnormal numbers give what the single kernels give."""
    programs.check(programs.FLOATING[name], *programs.special_values(CPU))


def test_a_group_of_a_training_step_contains_the_gradient_of_its_loss() -> None:
    """One element, as the gradient of a mean, is expanded within the kernel."""

    def step(x: Tensor) -> Tensor | None:
        x = x.detach().requires_grad_()
        (x * cd.sigmoid(x)).square().mean().backward()
        return x.grad

    x = programs.numbers((20, 30), cd.float32, CPU)
    graph = trace(step, x)
    assert "expand" in str(grouped(graph))
    [got] = compile_graph(graph)(x._payload)
    expected = step(x)
    assert expected is not None
    assert abs(got - expected.numpy()).max() < 1e-7


@pytest.mark.parametrize("size", [1, 5, 256, 10_007])
@pytest.mark.parametrize("d", [cd.float32, cd.float64, cd.float16], ids=str)
def test_random_numbers_are_those_of_single_kernels(size: int, d: dtype) -> None:
    """A mask is drawn in the kernel that uses it, from the same counters as the mask of a single kernel."""
    x, y = (programs.numbers((size,), d, CPU, seed) for seed in range(2))
    assert programs.check(programs.dropped, x, y)[0] >= 6


def test_a_mask_of_arrays_that_are_not_contiguous_has_a_kernel_of_its_own() -> None:
    """Random numbers are in C order, which a loop over other strides does not follow."""
    x, y = (programs.numbers((30, 40), cd.float32, CPU, seed) for seed in range(2))
    programs.check(programs.dropped, x.t(), y.t())
    programs.check(programs.dropped, x, y[0])


def test_a_kernel_with_random_numbers_declines_other_strides() -> None:
    """The graph was traced with contiguous arrays; the single kernels serve others."""
    x, y = (programs.numbers((30, 40), cd.float32, CPU, seed) for seed in range(2))
    graph = trace(programs.dropped, x, y)
    numbers = range(7, 7 + sum(value.is_number for value in graph.inputs))
    run = compile_graph(graph)
    expected = run(x._payload, y._payload, *numbers)
    got = run(x.t().contiguous().t()._payload, y._payload, *numbers)
    assert [abs(a - b).max() for a, b in zip(got, expected, strict=True)] == [0, 0, 0]


def test_rare_values_are_found_in_a_fused_kernel() -> None:
    """A chunk with a rare value of an intermediate result takes the costly expression."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        return F.gelu(x * y) + 1

    x = cd.linspace(-12, 12, 9000)
    programs.check(program, x, cd.full((9000,), 1.25))


def test_arrays_that_c_does_not_address_are_served_by_single_kernels() -> None:
    """A graph may be called with other strides than it was traced with, also negative ones."""
    x, y = (programs.numbers((6, 8), cd.float32, CPU, seed) for seed in range(2))
    run = compile_graph(trace(programs.chain, x, y))
    a, b = x.numpy(), y.numpy()
    expected = programs.chain(x, y).numpy()
    for arguments in ((a.T.copy().T, b), (a[::-1].copy()[::-1], b)):
        [got] = run(*arguments)
        assert abs(got - expected).max() < 1e-6


def test_numbers_of_a_call_are_arguments_of_the_kernel() -> None:
    """Another number does not need another kernel."""

    def scaled(x: Tensor, by: float) -> Tensor:
        return cd.tanh(x * by) + by

    x = programs.numbers((40,), cd.float32, CPU)
    for by in (0.5, 3.0):
        assert cd.equal(cd.compile(scaled)(x, by), scaled(x, by))


def test_without_a_compiler_the_core_calls_single_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning says what to install, and none if the user has forbidden compiling."""
    monkeypatch.setattr(fused, "may_compile", lambda: False)
    monkeypatch.setattr(fused, "_advised", [])
    x, y = (programs.numbers((6, 8), cd.float32, CPU, seed) for seed in range(2))
    graph = trace(programs.chain, x, y)
    with pytest.warns(RuntimeWarning, match="kernels cannot be made at run time: pip install candelabra-native"):
        [got] = compile_graph(graph)(x._payload, y._payload)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fused.compiled(graph) is None
        monkeypatch.setattr(fused, "_advised", [])
        monkeypatch.setenv(finding.COMPILE, "0")
        assert fused.compiled(graph) is None
    assert "jit" in ADVICE
    assert abs(got - programs.chain(x, y).numpy()).max() < 1e-6


def test_the_kernels_of_a_graph_are_compiled_by_one_call_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of one preamble share a file, which stands under the name of each."""
    calls: list[int] = []
    compile_unit = compiling.compile_unit

    def counted(sources: Sequence[Source], level: str, to: Path) -> Path:
        calls.append(len(sources))
        return compile_unit(sources, level, to)

    monkeypatch.setattr(compiling, "compile_unit", counted)

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        a = (x * 3.0 + y - 0.125) * x
        b = a.sum(0)
        return a, (b + 1.0) * b - x.shape[0]

    x, y = (programs.numbers((11, 5), cd.float32, CPU, seed) for seed in range(2))
    monkeypatch.setattr(finding, "folder", lambda: temporary_folder("fused-together"))
    ENGINE._launches.clear()
    compile_graph(trace(program, x, y))
    assert calls == [2]


def test_nodes_that_are_not_fusible() -> None:
    """Integer divisions, writes, and calls that a kernel refuses keep kernels of their own."""

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x // y, x.sum(), x.t(), x.clone().add_(1), x**2, x.sort().values

    x = programs.numbers((4, 5), cd.int32, CPU).abs() + 1
    graph = trace(program, x, x + 1)
    assert [node.name for node in graph.nodes if is_fusible(node)] == ["sum", "clone"]


@pytest.mark.parametrize("name", programs.REDUCED)
def test_a_reduction_of_computed_elements(name: str) -> None:
    """The elements are computed strip by strip, also those that are results; the sums are those of one array."""
    x, y = (programs.numbers((70, 100), cd.float32, CPU, seed) for seed in range(2))
    program, size = programs.REDUCED[name]
    assert programs.check(program, x, y) == [size]


@pytest.mark.parametrize("d", [cd.float16, cd.float64], ids=str)
def test_reductions_of_other_dtypes(d: dtype) -> None:
    """Half types are rounded before they are added, as in single kernels."""
    x, y = (programs.numbers((3, 3000), d, CPU, seed) for seed in range(2))
    assert programs.check(programs.mean_square, x, y[0]) == [3]


def test_strides_that_the_graph_was_not_traced_with() -> None:
    """A graph gets another kernel for the strides of a call; single kernels serve those that C does not address."""
    x, y = (programs.numbers((70, 100), cd.float32, CPU, seed) for seed in range(2))
    for program in (programs.row_sum, programs.scaled_softmax):
        run = compile_graph(trace(program, x, y))
        [expected, *_] = run(x._payload, y._payload)
        transposed = x.t().contiguous().t()._payload
        for a in (transposed, transposed[::-1].copy()[::-1]):
            assert abs(run(a, y._payload)[0] - expected).max() < 1e-5


def test_reductions_that_keep_kernels_of_their_own() -> None:
    """Columns and short rows cost more than they save, and a result that is used is not ready."""
    x, y = (programs.numbers((70, 8), cd.float32, CPU, seed) for seed in range(2))

    def programs_of_reductions(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (x[:, :3] * y[:, :3]).sum(0), (x - y).sum(1), (x + y).sum(dtype=cd.int32), (x + y).to(cd.complex64).sum()

    names = [node.name for node in grouped(trace(programs_of_reductions, x, y)).nodes]
    assert names.count("sum") == 4
    narrow = grouped(trace(lambda x, y: (x * y).sum(), x, y[:, :1]))
    assert [node.name for node in narrow.nodes] == ["mul", "sum"]
    wide = programs.numbers((70, 100), cd.float32, CPU)
    assert [n.name for n in grouped(trace(programs.column_sum, wide, wide)).nodes] == ["exp+mul+add", "sum"]

    def centred(x: Tensor) -> Tensor:
        doubled = x * 2
        return doubled - doubled.mean()

    wide = programs.numbers((4, 100), cd.float32, CPU)
    assert [node.name for node in grouped(trace(centred, wide)).nodes] == ["mul+mean", "sub"]


def products_of(graph: Graph) -> list[str]:
    """Return the names of the nodes with a product."""
    return [node.name for node in grouped(graph).nodes if "matmul" in node.name or "linear" in node.name]


@pytest.mark.parametrize("name", programs.PRODUCTS)
@pytest.mark.parametrize(
    ("sizes", "d"), [((40, 300, 33), cd.float32), ((200, 64, 128), cd.float32), ((8, 1, 8), cd.float64)], ids=str
)
def test_pointwise_operators_after_a_product(name: str, sizes: tuple[int, int, int], d: dtype) -> None:
    """They are computed in the kernel of the product: blocks of any width, several panels of the depth, batches."""
    m, k, n = sizes
    x, y = programs.numbers((m, k), d, CPU), programs.numbers((k, max(n, 2)), d, CPU, 1)
    if name == "saved_product" and k == 1:
        y = y.expand(2, -1).contiguous()
        x = x.expand(-1, 2).contiguous()
    program = programs.PRODUCTS[name]
    programs.check(program, x, y)
    assert all("+" in node for node in products_of(trace(program, x, y)))


@pytest.mark.parametrize("name", programs.PRODUCTS)
def test_the_sums_of_a_product_with_an_epilogue_have_the_same_bits(name: str) -> None:
    """Its work is divided as that of the product alone, so that elementary operators give the same bits."""
    x, y = programs.numbers((150, 520), cd.float32, CPU), programs.numbers((520, 96), cd.float32, CPU, 1)
    program = programs.PRODUCTS[name]
    got, want = cd.compile(program, fullgraph=True)(x, y), program(x, y)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert cd.equal(a, b)


def test_strides_of_a_product_that_the_graph_was_not_traced_with() -> None:
    """A product takes operands of other strides, and packs its left operand where that is worth it."""
    x, y = programs.numbers((150, 160), cd.float32, CPU), programs.numbers((160, 256), cd.float32, CPU, 1)
    run = compile_graph(trace(programs.activated, x, y))
    [expected] = run(x._payload, y._payload)
    for other in (x.t().contiguous().t(), cd.stack([x, x], 2)[:, :, 0]):
        [got] = run(other._payload, y._payload)
        assert abs(got - expected).max() < 1e-4
    [got] = run(x._payload[::-1].copy()[::-1], y._payload)
    assert abs(got - expected).max() < 1e-4


def test_products_that_keep_kernels_of_their_own() -> None:
    """Vectors, other dtypes, operands that the group computes, random numbers, and results of other shapes."""

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        half = (x.half() @ y.half()).relu()
        return (
            (x[:2] @ y).relu(), (x @ y[:, :3]).relu(), half, F.dropout(x @ y, 0.5), (x @ y) + y.new_ones(2, 40, 50),
            (x * 2) @ y, ((x @ y).relu() @ y.t()).to(cd.float64),
        )  # fmt: skip

    x, y = programs.numbers((40, 30), cd.float32, CPU), programs.numbers((30, 50), cd.float32, CPU, 1)
    assert products_of(trace(program, x, y)) == [
        *["matmul"] * 3, "matmul+mul", *["matmul"] * 2, "matmul+relu", "matmul",
    ]  # fmt: skip
    only = grouped(trace(programs.activated, x, y), multiplies=False)
    assert [node.name for node in only.nodes if "matmul" in node.name] == ["matmul"]


@pytest.mark.parametrize("name", programs.CONVOLUTIONS)
@pytest.mark.parametrize(
    ("sizes", "d"),
    [((2, 3, 40, 9), cd.float32), ((5, 40, 6, 7), cd.float64), ((1, 130, 33, 8), cd.float32)],
    ids=str,
)
def test_pointwise_operators_after_a_convolution(name: str, sizes: tuple[int, ...], d: dtype) -> None:
    """They are computed in the kernel of the convolution: in rows, planes or few positions, and in several panels."""
    x, w = programs.numbers(sizes, d, CPU), programs.numbers((20, sizes[1], 3, 3), d, CPU, 1)
    program = programs.CONVOLUTIONS[name]
    programs.check(program, x, w)
    names = [node.name for node in grouped(trace(program, x, w)).nodes]
    assert [name for name in names if "conv" in name] == [name for name in names if "conv+" in name]


def test_a_convolution_with_an_epilogue_takes_other_strides() -> None:
    """Images and filters may have any strides; single kernels serve another layout of the other operands."""

    def program(x: Tensor, w: Tensor, bias: Tensor, y: Tensor) -> Tensor:
        return (F.conv2d(x, w, bias) + y).relu()

    x, w = programs.numbers((2, 3, 9, 8), cd.float32, CPU), programs.numbers((5, 3, 2, 2), cd.float32, CPU, 1)
    bias, y = programs.numbers((5,), cd.float32, CPU, 2), programs.numbers((2, 5, 8, 7), cd.float32, CPU, 3)
    run = compile_graph(trace(program, x, w, bias, y))
    expected = program(x, w, bias, y).numpy()
    last = y.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for arguments in (
        (x.transpose(2, 3).contiguous().transpose(2, 3), w.transpose(0, 1).contiguous().transpose(0, 1), bias, y),
        (x, w, cd.stack([bias, bias], 1)[:, 0], y),
        (x, w, bias, last),
    ):
        [got] = run(*[t._payload for t in arguments])
        assert abs(got - expected).max() < 1e-5


def test_convolutions_that_keep_kernels_of_their_own() -> None:
    """Half types, and operands of layouts that the kernel does not address."""

    def program(x: Tensor, w: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return F.conv2d(x.half(), w.half()).relu(), F.conv2d(x, w) + y, F.conv2d(x, w) * y[:, :, :1]

    x, w = programs.numbers((2, 3, 9, 9), cd.float32, CPU), programs.numbers((5, 3, 2, 2), cd.float32, CPU, 1)
    y = programs.numbers((2, 5, 8, 8), cd.float32, CPU, 2).transpose(2, 3)
    names = [node.name for node in grouped(trace(program, x, w, y)).nodes]
    assert [name for name in names if "conv" in name] == ["conv"] * 3


@pytest.mark.parametrize("name", programs.ROWS)
@pytest.mark.parametrize("d", [cd.float32, cd.float16], ids=str)
def test_a_row_program_with_pointwise_nodes_around_it(name: str, d: dtype) -> None:
    """Operands and later results are computed in the kernel of a softmax or a normalization, random numbers too."""
    x, y = (programs.numbers((5, 7, 136), d, CPU, seed) for seed in range(2))
    program, size = programs.ROWS[name]
    assert programs.check(program, x, y) == [size]


def test_the_gradients_of_rows() -> None:
    """Forward and backward passes of a block are two kernels of rows. The result that nothing uses is not computed."""
    x, y = (programs.numbers((9, 64), cd.float32, CPU, seed).requires_grad_() for seed in range(2))
    norm = cd.nn.LayerNorm(64)

    def block() -> None:
        for leaf in (x, y, *norm.parameters()):
            leaf.grad = None
        norm(F.dropout(x, 0.25) + y).backward(cd.ones_like(y))

    compiled = cd.compile(block, fullgraph=True)
    gradients = []
    for run in (block, compiled, compiled):
        cd.manual_seed(1)
        run()
        gradients.append([leaf.grad for leaf in (x, y, *norm.parameters())])
    for got, want in zip(gradients[2], gradients[0], strict=True):
        assert got is not None
        assert want is not None
        assert cd.allclose(got, want, atol=1e-5)
    names = [node.name for node in grouped(trace(block)).nodes]
    assert any(name.endswith("add+normalize") for name in names)
    assert any("normalize_backward+" in name and "+mul" in name for name in names)


def test_rows_that_keep_kernels_of_their_own() -> None:
    """Rows that are too short, or too long for the cache, and rows that do not begin with a counter's first number."""

    def softmax(x: Tensor) -> Tensor:
        return F.softmax(x * 2, -1)

    def across(x: Tensor) -> Tensor:
        return F.softmax(x * 2, 0)

    def dropped(x: Tensor) -> Tensor:
        return F.softmax(F.dropout(x, 0.5), -1)

    for program, shape in ((softmax, (4, 20)), (softmax, (2, 10_000)), (across, (64, 64)), (dropped, (3, 65))):
        names = [node.name for node in grouped(trace(program, cd.zeros(shape))).nodes]
        assert names[-1] == "softmax"


def test_a_first_power_is_no_power() -> None:
    """The gradient of a square contains one, and the numbers come out as they are."""
    x = cd.tensor([float("nan"), float("inf"), -0.0, -3.5, 1e-40])
    assert cd.compile(lambda x: -(x**1))(x).numpy().tobytes() == (-x).numpy().tobytes()
