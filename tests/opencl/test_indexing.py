"""Reads and writes by index tensors on an OpenCL device, concatenation, masks, and flips."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import numpy as np
import pytest
from candelabra.dtypes import uint32
from candelabra.library import open_device
from candelabra_clike import Engine, StridedArray
from candelabra_clike.kernels import copies, indexing, masking, scattering
from candelabra_clike.templates.indexing import gather, scatter
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_opencl.backend import OpenCLBackend

from tests.frames import frames

Operation = Callable[..., Any]


@pytest.fixture(params=["device", "lanes"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(*shape: int) -> Any:
    """Return numbers of both signs from a fixed seed, whose sums are exact in any order."""
    return np.round(np.random.default_rng(9).standard_normal(shape) * 64).astype("f4") / 64


def indices(high: int, *shape: int) -> Any:
    """Return indices, most of them repeated."""
    return np.random.default_rng(4).integers(0, high, shape)


def synchronize(device: cd.device) -> None:
    """Wait for a device, and raise the errors of its kernels."""
    backend = open_device(device).backend
    assert isinstance(backend, OpenCLBackend)
    backend.synchronize(0)


def agrees(operation: Operation, form: cd.device, *operands: Any) -> None:
    """Assert that the device gives the reference's elements to the bit."""
    tensors = [cd.tensor(x) for x in operands]
    found, wanted = operation(*[t.to(form) for t in tensors]), operation(*tensors)
    np.testing.assert_array_equal(found.numpy(force=True), wanted.numpy())


READS: dict[str, tuple[Operation, tuple[Any, ...]]] = {
    "gather": (lambda x, i: x.gather(1, i), (values(7, 45), indices(45, 6, 33))),
    "gather along the first dim": (lambda x, i: x.gather(0, i), (values(7, 45), indices(7, 90, 45))),
    "index_select": (lambda x, i: x.index_select(1, i), (values(3, 20, 9), indices(20, 31))),
    "embedding": (lambda x, i: F.embedding(i, x), (values(50, 37), indices(50, 4, 11))),
    "an index of a dim in the middle": (lambda x, i: x[:, i - 5], (values(3, 9, 5), indices(9, 2, 4))),
    "two indices apart": (lambda x, i: x[i, :, i], (values(6, 4, 6), indices(6, 13))),
    "none": (lambda x, i: x[i], (values(6, 4), indices(6, 0))),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_elements_are_read_by_indices(form: cd.device, name: str) -> None:
    """The source may have any layout: contiguous or transposed."""
    operation, (x, index) = READS[name]
    agrees(operation, form, x, index)
    agrees(lambda t, i: operation(t.swapaxes(0, -1).contiguous().swapaxes(0, -1), i), form, x, index)


WRITES: dict[str, tuple[Operation, tuple[Any, ...]]] = {
    "scatter": (lambda x, i, s: x.scatter(1, i, s), (values(7, 45), indices(45, 6, 90), values(6, 90))),
    "scatter_add": (lambda x, i, s: x.scatter_add(0, i, s), (values(7, 45), indices(7, 300, 40), values(300, 40))),
    "to a few places": (lambda x, i, s: x.scatter_add(0, i, s), (values(9), indices(9, 9000), values(9000))),
    "amax": (lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), (values(9), indices(9, 50), values(50))),
    "prod": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "prod", include_self=False), (values(9), indices(5, 20), values(20)),
    ),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), (values(20, 33), indices(20, 300), values(300, 33))),
    "index_add inside": (lambda x, i, s: x.index_add(1, i, s), (values(3, 9, 5), indices(9, 40), values(3, 40, 5))),
    "index_put": (lambda x, i, s: x.index_put((i,), s), (values(30, 8), indices(30, 70), values(70, 8))),
    "sums by index_put": (
        lambda x, i, s: x.index_put((i, i), s, accumulate=True), (values(30, 30), indices(30, 700), values(700)),
    ),
    "nothing": (lambda x, i, s: x.scatter_add(0, i, s), (values(9), indices(9, 0), values(0))),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_elements_are_written_in_the_order_of_the_index(form: cd.device, name: str) -> None:
    """Sums equal the reference's to the bit for any number of repetitions; the last put is kept."""
    operation, operands = WRITES[name]
    agrees(operation, form, *operands)


@pytest.mark.parametrize("dtype", [cd.bool, cd.int16, cd.float16, cd.complex64])
def test_every_dtype_is_added_by_index(device: cd.device, dtype: Any) -> None:
    """Half types are added in float32 and rounded once."""
    x, s, i = (
        cd.tensor(values(9) * 3).to(dtype),
        cd.tensor(values(60) * 3).to(dtype),
        cd.tensor(indices(9, 60)),
    )
    found = x.to(device).scatter_add(0, i.to(device), s.to(device))
    assert found.tolist() == x.scatter_add(0, i, s).tolist()


def test_the_gradient_of_an_embedding_adds_up_rows(form: cd.device) -> None:
    """Repeated rows get the sum of their gradients, the padding row gets none."""

    def gradient(device: Any) -> Any:
        weight = cd.tensor(values(10, 7)).to(device).requires_grad_()
        index = cd.tensor(indices(10, 5, 30)).to(device)
        (F.embedding(index, weight, padding_idx=3) * cd.tensor(values(5, 30, 7)).to(device)).sum().backward()
        return weight.grad.numpy(force=True)

    np.testing.assert_allclose(gradient(form), gradient("cpu"), rtol=1e-5, atol=1e-5)


def test_writing_in_place_keeps_the_other_elements(form: cd.device) -> None:
    """The source may be the target itself."""
    x = cd.tensor(values(6, 6))
    far = x.to(form)
    index = cd.tensor(indices(6, 6))
    for t, i in ((far, index.to(form)), (x, index)):
        t.index_add_(0, i, t)
        t[1:3] = t[0]
        t[i, i] = 0.0
    np.testing.assert_array_equal(far.numpy(force=True), x.numpy())


BAD: dict[str, tuple[Operation, type[Exception], str]] = {
    "gather": (lambda x, i: x.gather(0, i), RuntimeError, r"gather\(\): index 9 is out of bounds for dimension 0 with"),
    "index_select": (lambda x, i: x.index_select(0, i), IndexError, "index out of range in self"),
    "embedding": (lambda x, i: F.embedding(i, x[:, None]), IndexError, "index out of range in self"),
    "index": (lambda x, i: x[i], IndexError, "index 9 is out of bounds for dimension 0 with size 4"),
    "scatter": (lambda x, i: x.scatter(0, i, x), RuntimeError, r"scatter\(\): index 9 is out of bounds"),
    "index_add": (lambda x, i: x.index_add(0, i, x[:2]), IndexError, r"index_add\(\): index out of range in self"),
    "index_put": (lambda x, i: x.index_put((i,), x[:2]), IndexError, "index 9 is out of bounds"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_bounds_is_raised_with_its_number(form: cd.device, name: str) -> None:
    """The error is raised once at the next synchronisation; then the device continues to work."""
    operation, error, text = BAD[name]
    x = cd.tensor([1.0, 2.0, 3.0, 4.0]).to(form)
    with pytest.raises(error, match=text):
        operation(x, cd.tensor([1, 9]).to(form)).tolist()
    synchronize(form)
    assert x.sum().item() == 10.0


COPIES: dict[str, Operation] = {
    "cat": lambda x: cd.cat([x, x[:, :3], x[:, ::2]], 1),
    "stack": lambda x: cd.stack([x, x], 1),
    "flip": lambda x: x.flip((0, 1)),
    "flip along all": lambda x: cd.flip(x, ()),
    "roll": lambda x: x.roll((3, -2), (0, 1)),
    "tril": lambda x: x.tril(-1),
    "triu of a transposed one": lambda x: x.T.triu(2),
    "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=2.5),
    "reflected": lambda x: F.pad(x[None], (3, 2), mode="reflect"),
    "circular": lambda x: F.pad(x[None], (3, 2), mode="circular"),
    "repeat": lambda x: x.repeat(2, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 0),
    "unfold and fold": lambda x: F.fold(F.unfold(x[None, None], 3, stride=2), tuple(x.shape), 3, stride=2),
    "masked_select": lambda x: x.masked_select(x > 0),
    "nonzero": lambda x: (x > 1).nonzero(),
    "nonzero of nothing": lambda x: (x > 99).nonzero(),
    "one_hot": lambda x: F.one_hot((x[0] > 0).to(cd.int64), 3),
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 2),
    "cdist": lambda x: cd.cdist(x, x, p=1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_tensors_are_concatenated_selected_and_flipped(form: cd.device, name: str) -> None:
    """Every element equals the reference's."""
    agrees(COPIES[name], form, np.round(values(17, 45) * 8))


def test_kernels_refuse_invalid_arguments(engine: Engine) -> None:
    """The core checks such calls first; a direct call of the kernel raises a specific error."""

    def empty(*shape: int, dtype: Any = cd.float32) -> StridedArray:
        return engine.empty(shape, dtype)

    index = empty(2, dtype=cd.int64)
    with pytest.raises(ValueError, match="does not fit an input of shape"):
        indexing.gather(empty(2, 2), 0, empty(2, 3, dtype=cd.int64))
    with pytest.raises(ValueError, match=r"the index must be a vector \(of one element for a 0-d input\)"):
        indexing.index_select(empty(), 0, index)
    with pytest.raises(ValueError, match=r"embedding\(\) expects a weight with 2 dims, got 1"):
        indexing.embedding(empty(3), index, -1, False)
    with pytest.raises(IndexError, match="index out of bounds: an indexed dim is empty"):
        indexing.gather(empty(0), 0, index)
    with pytest.raises(ValueError, match="is larger than the source of shape"):
        scattering.KERNELS["scatter_add"](empty(4), 0, index, empty(1))
    with pytest.raises(
        ValueError, match=r"a source of shape \(2, 2\) does not fit an input of shape \(4, 3\) along dim 0"
    ):
        scattering.KERNELS["index_add"](empty(4, 3), 0, index, empty(2, 2))
    with pytest.raises(ValueError, match=r"values of shape .* do not broadcast to the indexed shape"):
        scattering.KERNELS["index_put"](empty(4), [index], empty(3, 2), False)
    with pytest.raises(IndexError, match="index out of bounds: an indexed dim is empty"):
        scattering.KERNELS["scatter_add"](empty(0), 0, index, empty(2))
    with pytest.raises(ValueError, match=r"cat\(\) expects equal sizes except along dim"):
        copies.cat([empty(2, 2), empty(3, 3)], 0)
    with pytest.raises(ValueError, match="a triangle needs at least 2 dims, got shape"):
        masking.KERNELS["tril"](empty(3), 0)


# -- plans ------------------------------------------------------------------------------------------------------------
PLANNED: dict[str, tuple[Any, Callable[[cd.Tensor, cd.Tensor], Any]]] = {
    "x[i]": (gather.gather_plan, lambda x, i: x[i]),
    "gather": (gather.gather_plan, lambda x, i: x.gather(0, i.unsqueeze(1).expand(-1, 3))),
    "x[i] = y": (scatter.scatter_plan, lambda x, i: x.__setitem__(i, x.new_ones(i.shape[0], x.shape[1]))),
    "index_add": (scatter.scatter_plan, lambda x, i: x.index_add(0, i, x[: i.shape[0]])),
    "scatter_add": (scatter.scatter_plan, lambda x, i: x.scatter_add(0, i.unsqueeze(1), x)),
}


@pytest.mark.parametrize("name", PLANNED)
def test_a_call_with_known_layouts_plans_nothing(name: str, device: cd.device) -> None:
    """Other indices and offsets use the plan of the first call; another shape gets its own, with the right result."""
    planned, operation = PLANNED[name]
    i, j, longer = (cd.tensor(k).to(device) for k in ([0, 2, 2], [3, 1, 0], [1, 3, 0, 2]))
    x = cd.tensor(values(14, 5)).to(device)
    operation(x[:4], i)
    known = planned.cache_info().misses
    operation(x[4:8], j)
    operation(x[:4], i)
    assert planned.cache_info().misses == known
    for index in (i, j, longer):
        agrees(lambda x, k: (operation(part := x[2:6], k), part)[1], device, values(14, 5), index.numpy(force=True))


def test_an_assignment_by_an_index_enters_few_functions(device: cd.device) -> None:
    """The core parses the index, and the device looks up its plan: 108 functions before there were plans."""
    x, y, i = cd.zeros(8, 8, device=device), cd.ones(2, 8, device=device), cd.tensor([1, 2]).to(device)

    def assign() -> None:
        x[i] = y

    assert frames(assign) <= 32
    assert frames(lambda: x[i]) <= 28


@pytest.mark.parametrize(
    ("rows", "count", "columns"), [(50, 300, 7), (3, 100, 1), (1000, 257, 33), (2, 1001, 2), (9, 9, 3)]
)
def test_lanes_share_columns_by_parts_of_the_target(lanes: cd.device, rows: int, count: int, columns: int) -> None:
    """Each lane adds the values of its part in order, so that sums are those of a loop, to the last bit."""
    rng = np.random.default_rng(count)
    index, source = rng.integers(0, rows, count), rng.normal(size=(count, columns)).astype(np.float32)
    expected = np.zeros((rows, columns), np.float32)
    for row, value in zip(index, source, strict=True):
        expected[row] += value
    places, values = cd.tensor(index.tolist()).to(lanes), cd.tensor(source.tolist()).to(lanes)
    assert cd.zeros(rows, columns, device=lanes).index_add_(0, places, values).tolist() == expected.tolist()
    turned = cd.zeros(columns, rows, device=lanes).index_add_(1, places, values.t())
    assert turned.tolist() == expected.T.tolist()


@pytest.mark.parametrize(
    ("outer", "inner", "fold", "size", "shares"),
    [(1, 512, 8192, 8192, 50), (1, 512, 8192, 5, 5), (64, 256, 3136, 12544, 8), (1, 1, 100, 1000, 12), (1, 9, 1, 9, 1)],
)
def test_few_columns_are_shared_by_many_lanes(outer: int, inner: int, fold: int, size: int, shares: int) -> None:
    """More lanes per column shorten the work of each; but each reads all indices."""
    engine: Any = SimpleNamespace(traits=SimpleNamespace(serial=False, compute_units=132))
    assert scatter.shares(engine, outer, inner, fold, size) == (1, shares)


@pytest.mark.parametrize("dtype", [cd.float32, cd.float16, cd.int64, cd.uint8, cd.complex64])
@pytest.mark.parametrize("columns", [slice(0, 32), slice(0, 16), slice(16, 32), slice(3, 19), slice(0, 7)])
def test_lanes_gather_vectors_of_rows(lanes: cd.device, dtype: cd.dtype, columns: slice) -> None:
    """Rows are moved by vectors where they are contiguous, and single elements where an address is not aligned."""
    values = cd.arange(9 * 32).reshape(9, 32).remainder(251).to(dtype)
    places = cd.tensor([8, 0, 3, 3, 5])
    found = values.to(lanes)[:, columns].index_select(0, places.to(lanes))
    assert found.tolist() == values[:, columns].index_select(0, places).tolist()
    found = values.to(lanes)[:, columns][places.to(lanes)[:2]]
    assert found.tolist() == values[:, columns][places[:2]].tolist()


def test_rows_that_are_gathered_by_vectors_start_at_multiples_of_one() -> None:
    """Neither the size of a row nor a stride may move a lane between two vectors, and a row has one index."""
    dim = IndexedDim((1, 0), 0, 9, 8)
    assert gather.vector_of(uint32, (5, 8), ((8, 1), (0, 1), (1, 0)), [dim]) == 4
    assert gather.vector_of(uint32, (5, 6), ((6, 1), (0, 1), (1, 0)), [dim]) == 1
    assert gather.vector_of(uint32, (5, 8), ((8, 1), (0, 1), (8, 1)), [dim]) == 1
    assert gather.vector_of(uint32, (5, 8), ((8, 1), (0, 1), (1, 0)), [dim._replace(step=6)]) == 1
    assert gather.vector_of(uint32, (5, 8), ((8, 1), (0, 2), (1, 0)), [dim]) == 1
