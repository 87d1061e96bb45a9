"""Fused kernels of compiled functions on OpenCL devices, compared with single kernels of the device cpu."""

import candelabra as cd
import pytest
from candelabra.dtypes import dtype
from candelabra.graph import compile_graph, trace
from candelabra_clike.fusion import fused

from tests import fused_programs as programs

pytestmark = pytest.mark.rounding


@pytest.fixture(params=["device", "lanes"])
def target(request: pytest.FixtureRequest) -> cd.device:
    """Return a processor, or a device whose work-items are lanes."""
    found: cd.device = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    "layout", ["contiguous", "broadcast", "both transposed", "with steps", "without dims", "empty"]
)
def test_a_chain_of_any_layout(layout: str, target: cd.device) -> None:
    """One kernel computes what the kernels of the operators compute."""
    assert programs.check(programs.chain, *programs.LAYOUTS[layout](target), on="cpu") == [9]


@pytest.mark.parametrize(
    ("name", "d"), [("several_outputs", cd.float32), ("casts", cd.float64), ("selections", cd.float16)], ids=str
)
def test_programs_of_floating_dtypes(name: str, d: dtype, target: cd.device) -> None:
    """Several outputs may have several dtypes; half types are rounded between operators."""
    x, y = (programs.numbers((13, 17), d, target, seed) for seed in range(2))
    programs.check(programs.FLOATING[name], x, y, on="cpu")


def test_results_in_place_of_scans(target: cd.device) -> None:
    """An operand that dies becomes the result; results of earlier calls, views and other operands keep their values."""
    x, y = (programs.numbers((24, 24), cd.float32, target, seed) for seed in range(2))
    programs.check(programs.after_scans, x, y, on="cpu")


def test_programs_of_integers(target: cd.device) -> None:
    """Narrow integers wrap around."""
    x, y = (programs.numbers((9, 31), cd.int8, target, seed) for seed in range(2))
    programs.check(programs.integers, x, y, on="cpu")


def test_special_values(target: cd.device) -> None:
    """NaN, infinities, zeros of both signs and subnormal numbers give what the single kernels give."""
    programs.check(programs.chain, *programs.special_values(target), on="cpu")


def test_random_numbers_are_those_of_single_kernels(target: cd.device) -> None:
    """A mask is drawn in the kernel that uses it, from the same counters as on the device cpu."""
    x, y = (programs.numbers((1003,), cd.float32, target, seed) for seed in range(2))
    cd.manual_seed(3)
    expected = programs.dropped(x.to("cpu"), y.to("cpu"))
    cd.manual_seed(3)
    for got, want in zip(cd.compile(programs.dropped, fullgraph=True)(x, y), expected, strict=True):
        assert cd.equal(got.to("cpu"), want)


@pytest.mark.parametrize("name", ["row_sum", "mean_square"])
def test_a_reduction_of_computed_elements(name: str, target: cd.device) -> None:
    """The elements are computed strip by strip on a processor, and each by its lane on other devices."""
    x, y = (programs.numbers((70, 100), cd.float32, target, seed) for seed in range(2))
    program, size = programs.REDUCED[name]
    assert programs.check(program, x, y, on="cpu") == [size]


@pytest.mark.parametrize("name", ["around_log_softmax", "dropped_norm"])
def test_a_row_program_with_pointwise_nodes_around_it(name: str, device: cd.device) -> None:
    """Operands and later results are computed in the kernel of a softmax or a normalization on a processor."""
    x, y = (programs.numbers((5, 7, 136), cd.float32, device, seed) for seed in range(2))
    program, size = programs.ROWS[name]
    assert programs.check(program, x, y, on="cpu") == [size]


@pytest.mark.parametrize("name", programs.PRODUCTS)
def test_pointwise_operators_after_a_product(name: str, target: cd.device) -> None:
    """They are computed on blocks of the product on a processor, and on the sums of each lane on other devices."""
    x, y = programs.numbers((70, 300), cd.float32, target), programs.numbers((300, 96), cd.float32, target, 1)
    program = programs.PRODUCTS[name]
    programs.check(program, x, y, on="cpu", terms=300)
    names = [node.name for node in fused(trace(program, x, y)).nodes]
    assert any("+" in each and ("matmul" in each or "linear" in each) for each in names)


@pytest.mark.parametrize("name", programs.CONVOLUTIONS)
def test_pointwise_operators_after_a_convolution(name: str, target: cd.device) -> None:
    """They are computed on tiles of the convolution on a processor, and on the sums of each lane on other devices."""
    x, w = programs.numbers((2, 30, 9, 40), cd.float32, target), programs.numbers((20, 30, 3, 3), cd.float32, target, 1)
    program = programs.CONVOLUTIONS[name]
    programs.check(program, x, w, on="cpu", terms=270)
    assert any("conv+" in node.name for node in fused(trace(program, x, w)).nodes)


def test_a_sum_of_columns_on_devices_of_lanes(lanes: cd.device) -> None:
    """A processor has a kernel of its own for it, see the native kernels' tests."""
    x, y = (programs.numbers((70, 100), cd.float32, lanes, seed) for seed in range(2))
    assert programs.groups(trace(programs.column_sum, x, y), serial=False) == [4]
    got = cd.compile(programs.column_sum, fullgraph=True)(x, y).to("cpu")
    assert cd.allclose(got, programs.column_sum(x.to("cpu"), y.to("cpu")), atol=1e-4)


def test_devices_of_lanes_fuse_no_rows(lanes: cd.device) -> None:
    """Row programs have kernels of their own there."""
    x, y = (programs.numbers((9, 64), cd.float32, lanes, seed) for seed in range(2))
    graph = trace(programs.scaled_softmax, x, y)
    assert [node.name for node in fused(graph, serial=False).nodes] == ["mul+add", "softmax"]
    [got] = compile_graph(graph)(x._payload, y._payload)
    assert got.shape == x.shape
