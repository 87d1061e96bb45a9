"""Elementwise loops over arrays of every layout, in the forms for processors and for GPUs."""

from __future__ import annotations

import sys
from collections.abc import Callable

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import open_device, wrap
from candelabra_clike import layouts
from candelabra_clike.kernels.copies import PARALLEL_COPY_SIZE
from candelabra_clike.templates.elementwise import elementwise
from candelabra_opencl.backend import OpenCLBackend

from tests.frames import frames

pytestmark = pytest.mark.rounding

Array = np.ndarray
LAYOUTS: dict[str, Callable[[cd.Tensor], cd.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "every second column": lambda x: x[:, ::2],
    "every second row": lambda x: x[::2],
    "a corner": lambda x: x[3:, 5:],
    "one row": lambda x: x[1],
    "one column": lambda x: x[:, 1:2],
    "expanded": lambda x: x[:, :1].expand(70, 45),
}


@pytest.fixture(params=["device", "lanes"])
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms, and with those for GPUs."""
    found: cd.device = request.getfixturevalue(request.param)
    return found


def to_device(form: cd.device, values: Array) -> cd.Tensor:
    """Return the values on the device."""
    return cd.tensor(values.tolist(), dtype=cd.float32).to(form)


def to_numpy(x: cd.Tensor) -> Array:
    """Return a tensor's values as an array."""
    return np.array(x.tolist(), np.float32).reshape(tuple(x.shape))


def matrix(rows: int, columns: int, start: float = 0.0) -> Array:
    """Return distinct numbers."""
    return np.arange(start, start + rows * columns, dtype=np.float32).reshape(rows, columns)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unary_kernels_read_every_layout(form: cd.device, layout: str) -> None:
    """A kernel of one array gives NumPy's result for any view."""
    values = matrix(70, 45)
    found = -LAYOUTS[layout](to_device(form, values))
    np.testing.assert_array_equal(to_numpy(found), -to_numpy(LAYOUTS[layout](cd.tensor(values.tolist()))))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((70, 45), (45,)),
        ((70, 45), (70, 1)),
        ((45,), (70, 1)),
        ((3, 1, 5), (4, 1)),
        ((2, 3, 4, 5), (3, 1, 5)),
        ((1,), (7, 2)),
        ((), (3, 3)),
        ((2, 1, 3, 1, 2), (5, 1, 4, 2)),
    ],
)
def test_operands_broadcast(form: cd.device, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Sizes of 1 and missing dims are repeated for either operand."""
    a = np.arange(np.prod(first, dtype=int), dtype=np.float32).reshape(first)
    b = np.arange(np.prod(second, dtype=int), dtype=np.float32).reshape(second) * 100
    np.testing.assert_array_equal(to_numpy(to_device(form, a) + to_device(form, b)), a + b)
    np.testing.assert_array_equal(to_numpy(to_device(form, b) - to_device(form, a)), b - a)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_operands_of_different_memory_orders_are_combined(form: cd.device, order: tuple[int, ...]) -> None:
    """A contiguous array may be combined with one whose dims have any other order."""
    a = np.arange(40 * 35 * 3, dtype=np.float32).reshape(40, 35, 3)
    b = (np.arange(40 * 35 * 3, dtype=np.float32) * 3).reshape([a.shape[d] for d in np.argsort(order)])
    wanted = a - b.transpose(np.argsort(np.argsort(order)).tolist())
    found = to_device(form, a) - to_device(form, b).permute(tuple(np.argsort(np.argsort(order)).tolist()))
    np.testing.assert_array_equal(to_numpy(found), wanted)


def test_results_have_the_memory_order_of_their_operands(form: cd.device) -> None:
    """Transposed operands give a transposed result, as in the reference, so no element is copied needlessly."""
    x = to_device(form, matrix(4, 6)).T
    assert (x + x).stride() == x.stride() == (1, 6)
    assert (x + to_device(form, matrix(6, 1))).stride() == (1, 6)
    assert (x[:, :2] + 1).stride() == (1, 6)
    assert (to_device(form, matrix(6, 4)) + x).stride() == (4, 1)


def test_long_rows_are_shared_by_several_work_items(form: cd.device) -> None:
    """Rows of strided elements longer than a chunk, and their ends, are computed completely."""
    values = matrix(2, 2 * 9001)
    x = to_device(form, values)
    np.testing.assert_array_equal(to_numpy(x[:, ::2] * 2), values[:, ::2] * 2)
    np.testing.assert_array_equal(to_numpy(x + x[:, :1]), values + values[:, :1])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inplace_kernels_write_through_views(form: cd.device, layout: str) -> None:
    """An in-place operator changes the viewed elements of the base, and no others."""
    if layout == "expanded":
        layout = "contiguous"
    values = matrix(70, 45)
    x, wanted = to_device(form, values), cd.tensor(values.tolist())
    LAYOUTS[layout](x).mul_(3)
    LAYOUTS[layout](wanted).mul_(3)
    np.testing.assert_array_equal(to_numpy(x), to_numpy(wanted))


def test_inplace_kernels_may_read_what_they_write(form: cd.device) -> None:
    """The operand may be the output; one that overlaps it with another layout is refused or, in a copy, read before."""
    values = matrix(40, 40)
    x = to_device(form, values)
    for target, operand in ((x, x.T), (x[1:], x[:-1])):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            target.add_(operand)
    np.testing.assert_array_equal(to_numpy(x), values)
    x.copy_(x.T)
    np.testing.assert_array_equal(to_numpy(x), values.T)
    y = to_device(form, values)
    y[1:] = y[:-1]
    np.testing.assert_array_equal(to_numpy(y[1:]), values[:-1])
    z = to_device(form, values)
    z.add_(z)
    np.testing.assert_array_equal(to_numpy(z), values + values)


def test_empty_arrays_stay_empty(form: cd.device) -> None:
    """An empty result has the correct shape."""
    x = to_device(form, matrix(3, 4))
    assert (x[:0] + 1).shape == (0, 4)
    assert (x[:, :0] + x[:, :1]).shape == (3, 0)
    assert x[:0].mul_(2).shape == (0, 4)


@pytest.mark.parametrize("size", [1, 3, 15, 16, 17, 63, 64, 65, 255, 257, 1024, 4095, 4096, 4097, 9001])
@pytest.mark.parametrize("dtype", [cd.bool, cd.uint8, cd.float16, cd.int32, cd.float32, cd.float64, cd.complex128])
def test_results_larger_than_the_caches_are_the_same(cacheless: cd.device, dtype: cd.dtype, size: int) -> None:
    """Non-temporal stores write complete lines and the remainder: every element of every width is correct."""
    host = (cd.arange(size + 3) % 119).to(dtype)
    x = host.to(cacheless)
    for a, b in ((x, host), (x[3:], host[3:])):
        assert cd.equal((a * a).cpu(), b * b)
        assert cd.equal((a + 1).cpu(), b + 1)
        assert cd.equal((a == a[0]).cpu(), b == b[0])
        assert cd.equal(a.to(cd.complex64).cpu(), b.to(cd.complex64))
    row, column = host[:size].unsqueeze(0), host[:3].unsqueeze(1)
    assert cd.equal((row.to(cacheless) * column.to(cacheless)).cpu(), row * column)


def test_only_memory_bound_kernels_bypass_the_caches(cacheless: cd.device) -> None:
    """Sums use non-temporal stores, library functions and in-place operators do not."""
    backend = open_device(cacheless).backend
    assert isinstance(backend, OpenCLBackend)
    x = cd.ones(5000).to(cacheless)
    (x - x).sub_(x).exp()
    names = {source.name for source in backend.engine(0)._kernels}
    assert names >= {"sub_float32", "sub_float32_past_caches", "exp_float32"}
    assert "exp_float32_past_caches" not in names


@pytest.mark.parametrize("size", [PARALLEL_COPY_SIZE // 4 - 1, PARALLEL_COPY_SIZE // 4, PARALLEL_COPY_SIZE // 4 + 5])
def test_large_copies_are_whole(form: cd.device, size: int) -> None:
    """The driver or a kernel copies, depending on the size: all elements are copied to new memory."""
    x = cd.arange(size, dtype=cd.int32).to(form)
    copy, other = x.clone(), cd.zeros(size + 1, dtype=cd.int32, device=form)
    other[1:].copy_(x)
    x.zero_()
    assert cd.equal(copy.cpu(), cd.arange(size, dtype=cd.int32))
    assert cd.equal(other[1:].cpu(), copy.cpu())
    assert other[0].item() == 0
    other[1:].copy_(other[:-1])
    assert cd.equal(other[2:].cpu(), copy[:-1].cpu())


def test_shapes_that_do_not_broadcast_are_refused(form: cd.device) -> None:
    """The error is the core's, which names the sizes and the dim."""
    x = to_device(form, matrix(3, 4))
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(4\) must match the size of tensor b \(3\)"):
        x + x[:, :3]
    with pytest.raises(RuntimeError, match="broadcast shape"):
        x[:1].add_(x.clone())
    bits = x > 0
    with pytest.raises(RuntimeError, match=r"tensor a \(3\) must match the size of tensor b \(4\) .* dimension 1"):
        cd.addcmul(bits[:, :3], bits, bits[:2])


def test_products_of_bools_are_added_as_bools(form: cd.device) -> None:
    """Every factor except 0 is True; the result is a bool, as on the reference device."""
    x, a, b = (cd.tensor([bool(i >> n & 1) for i in range(8)]).to(form) for n in range(3))
    for value in (1, 2, -1, 0.5, 0):
        out = cd.addcmul(x, a, b, value=value)
        assert out.dtype is cd.bool
        assert out.tolist() == [bool(i & 1 or (value and i & 2 and i & 4)) for i in range(8)]


# -- plans ------------------------------------------------------------------------------------------------------------
def test_the_gradient_of_a_sum_takes_the_short_path(device: cd.device) -> None:
    """An operand that is expanded, or in another memory order, costs no more functions than a contiguous one."""
    x, y = cd.ones(8, 8, device=device), cd.ones(8, 8, device=device)
    one, row = cd.ones((), device=device).expand(8, 8), cd.ones(8, device=device)
    contiguous = frames(lambda: x * y)
    for other in (one, row, y.t()):
        assert frames(lambda other=other: x * other) <= contiguous  # type: ignore[misc]


def test_a_plan_has_a_largest_offset(lanes: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays whose offset is too large for 32-bit indices get a plan of their own."""
    monkeypatch.setattr(elementwise, "WIDE", 128)
    monkeypatch.setattr(layouts, "WIDE", 128)
    nest = elementwise.Elementwise.of("twice", lambda a: a + a, [cd.float32], cd.float32)
    x = cd.arange(300, device=lanes, dtype=cd.float32)
    for start in (0, 50, 55, 56, 200, 3):
        rows = x[start : start + 72].view(8, 9)[:, :8].t()
        found = nest(rows._payload)
        assert wrap(found, x._keys).tolist() == (rows * 2).tolist()
    assert sorted(plan.max_offset for plan in nest.plans.values()) == [128 - 1 - 71, sys.maxsize]


@pytest.mark.parametrize("d", [cd.complex64, cd.complex128])
def test_in_place_comparisons_of_complex_numbers_store_real_ones(d: cd.dtype) -> None:
    """True is 1 + 0j, as on the reference device."""
    x = cd.tensor([1 + 2j, 3 - 1j], dtype=d, device="opencl")
    assert x.clone().eq_(x).tolist() == [1 + 0j, 1 + 0j]
    assert x.clone().ne_(x).tolist() == [0j, 0j]
    assert x.clone().logical_not_().tolist() == [0j, 0j]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(64, 64), (2, 131, 73), (3, 70)])
def test_transposed_operands_are_read_by_tiles(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """Whole tiles, their remainders in both dims, batches; with operands of the result's layout, and columns."""
    x = rng.integers(0, 9, shape).astype(dtype)
    y = rng.integers(0, 9, (*shape[:-2], shape[-1], shape[-2])).astype(dtype)
    a, b = cd.tensor(x, device="opencl"), cd.tensor(y, device="opencl").mT
    np.testing.assert_array_equal((a + b).cpu().numpy(), x + np.swapaxes(y, -1, -2))
    np.testing.assert_array_equal((b - a[..., :1]).cpu().numpy(), np.swapaxes(y, -1, -2) - x[..., :1])
    np.testing.assert_array_equal(b.contiguous().cpu().numpy(), np.swapaxes(y, -1, -2))
