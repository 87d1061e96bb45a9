"""Collectives of tensors against their definitions. Ranks are threads."""

from __future__ import annotations

from functools import reduce
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra.distributed import ReduceOp, threads
from candelabra.distributed._buffers import EngineBuffer

SIZE = 3
INTEGERS = [cd.uint8, cd.int8, cd.int16, cd.int32, cd.int64]
FLOATING = [cd.float16, cd.bfloat16, cd.float32, cd.float64]


def values(rank: int, *shape: int, dtype: Any = cd.float32) -> Any:
    """Return small numbers of a rank, whose sums and products are exact in every dtype."""
    numbers = np.random.default_rng(rank).integers(1, 4, shape)
    return cd.tensor(numbers.tolist()).to(dtype)


def of_all(*shape: int, dtype: Any = cd.float32) -> list[Any]:
    """Return the numbers of all ranks."""
    return [values(rank, *shape, dtype=dtype) for rank in range(SIZE)]


DEFINITIONS: dict[ReduceOp, Any] = {
    ReduceOp.SUM: lambda a, b: a + b,
    ReduceOp.PRODUCT: lambda a, b: a * b,
    ReduceOp.MIN: cd.minimum,
    ReduceOp.MAX: cd.maximum,
    ReduceOp.BAND: cd.bitwise_and,
    ReduceOp.BOR: cd.bitwise_or,
    ReduceOp.BXOR: cd.bitwise_xor,
}


@pytest.mark.parametrize("op", list(DEFINITIONS), ids=lambda op: op.name)
def test_all_reduce_is_the_reduction_of_all(op: ReduceOp) -> None:
    """In every dtype; bitwise reductions of integers only. The version of the tensor counts the write."""
    dtypes = [*INTEGERS, *([] if op.name[0] == "B" else FLOATING)]
    if op in (ReduceOp.SUM, ReduceOp.PRODUCT):
        dtypes += [cd.complex64, cd.complex128]

    def program() -> None:
        for dtype in dtypes:
            x = values(dist.get_rank(), 4, 5, dtype=dtype)
            before = x._version
            dist.all_reduce(x, op)
            expected = reduce(DEFINITIONS[op], of_all(4, 5, dtype=dtype))
            assert x.dtype is dtype
            assert cd.equal(x, expected), (dtype, op)
            assert x._version > before

    threads.run(program, SIZE)


def test_bools_are_reduced_by_logic() -> None:
    """A sum is "or" and a product is "and", as of truth values."""

    def program() -> Any:
        rank = dist.get_rank()
        found = []
        for op in (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.BXOR):
            x = cd.tensor([True, rank == 0, False])
            dist.all_reduce(x, op)
            assert x.dtype is cd.bool
            found.append(x.tolist())
        return found

    for found in threads.run(program, SIZE):
        assert found == [[True, True, False], [True, False, False], [True, True, False]]


def test_averages_divide_the_sum() -> None:
    """In the reduced dtype, of halves in float32."""

    def program() -> None:
        for dtype in FLOATING:
            x = values(dist.get_rank(), 6, dtype=dtype)
            dist.all_reduce(x, ReduceOp.AVG)
            wide = cd.float32 if dtype.itemsize == 2 else dtype
            assert cd.equal(x, (sum(of_all(6, dtype=wide)) / SIZE).to(dtype))

    threads.run(program, SIZE)


def test_several_tensors_are_one_work() -> None:
    """They may differ in shape, dtype and layout, and are reduced as one by one."""

    def program() -> Any:
        rank = dist.get_rank()
        tensors = [cd.full((2, 3), float(rank)), cd.arange(4) + rank, cd.ones(3, 2, dtype=cd.float16).t() * rank]
        versions = [tensor._version for tensor in tensors]
        work = dist.all_reduce_coalesced(tensors, async_op=True)
        assert work is not None
        assert work.result() == tensors
        work.wait()
        assert all(tensor._version > version for tensor, version in zip(tensors, versions, strict=True))
        mean = [cd.full((3,), 1.0 + rank)]
        assert dist.all_reduce_coalesced(mean, dist.ReduceOp.AVG) is None
        return [tensor.tolist() for tensor in (*tensors, *mean)]

    expected = [[[3.0] * 3] * 2, [3, 6, 9, 12], [[3.0] * 3] * 2, [2.0] * 3]
    assert threads.run(program, 3) == [expected] * 3
    with pytest.raises(ValueError, match=r"all_reduce_coalesced: tensors must be a list of at least one tensor, got"):
        dist.all_reduce_coalesced([])
    with pytest.raises(TypeError, match=r"(?s)Expected parameter `tensors` of type candelabra.Tensor.*but got"):
        dist.all_reduce_coalesced([1.0])  # type: ignore[list-item]


def test_reductions_that_have_no_meaning_are_refused() -> None:
    """The error is the same on every rank, and nothing is sent."""

    def program() -> None:
        with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp\.BAND with non-integral dtype"):
            dist.all_reduce(cd.ones(2), ReduceOp.BAND)
        with pytest.raises(ValueError, match=r"all_reduce does not support ReduceOp\.MAX on complex tensors"):
            dist.all_reduce(cd.ones(2, dtype=cd.complex64), ReduceOp.MAX)
        with pytest.raises(
            RuntimeError, match=r"all_reduce: ReduceOp\.AVG needs a floating-point tensor, got candelabra\.int64"
        ):
            dist.all_reduce(cd.tensor([1]), ReduceOp.AVG)
        with pytest.raises(ValueError, match=r"ReduceOp\.PREMUL_SUM needs the engine 'nccl'"):
            dist.all_reduce(cd.ones(2), ReduceOp.PREMUL_SUM)
        with pytest.raises(TypeError, match=r"op must be a candelabra\.distributed\.ReduceOp, got 'sum'"):
            dist.all_reduce(cd.ones(2), "sum")  # type: ignore[arg-type]

    threads.run(program, 2)


def test_tensors_that_are_not_contiguous_are_written_too() -> None:
    """A transposed view, a slice, an element and an empty tensor."""

    def program() -> None:
        rank = dist.get_rank()
        base = values(rank, 4, 5)
        whole = sum(of_all(4, 5))
        x = base.clone()
        dist.all_reduce(x.t())
        assert cd.equal(x, whole)
        x = base.clone()
        dist.all_reduce(x[:, 1:3])
        assert cd.equal(x[:, 1:3], whole[:, 1:3])
        assert cd.equal(x[:, 3:], base[:, 3:])
        x = base.clone()
        dist.all_reduce(x[2, 1])
        assert x[2, 1] == whole[2, 1]
        dist.all_reduce(cd.empty(0, 3))
        leaf = base.clone().requires_grad_()
        dist.all_reduce(leaf)
        assert cd.equal(leaf.detach(), whole)
        assert leaf.is_leaf

    threads.run(program, SIZE)


@pytest.mark.usefixtures("lantern")
def test_tensors_of_other_devices_go_through_the_host() -> None:
    """A device with memory of its own, and one whose arrays are immutable."""

    def program() -> None:
        for device in ("lantern:1", "ember"):
            x = values(dist.get_rank(), 3, 2).to(device)
            dist.all_reduce(x)
            assert str(x.device).startswith(device.partition(":")[0])
            assert x.tolist() == sum(of_all(3, 2)).tolist()
            everything = cd.empty(SIZE * 3, 2, device=device)
            dist.all_gather_into_tensor(everything, x)
            assert cd.equal(everything.cpu(), cd.cat([x.cpu()] * SIZE))

    threads.run(program, SIZE)


def test_broadcast_and_reduce_have_a_root() -> None:
    """By global rank or by the rank in the group; other tensors are not written by reduce."""

    def program() -> None:
        rank = dist.get_rank()
        for root in range(SIZE):
            x = values(rank, 5, dtype=cd.bfloat16)
            dist.broadcast(x, root)
            assert cd.equal(x, values(root, 5, dtype=cd.bfloat16))
            x = values(rank, 5)
            dist.reduce(x, op=ReduceOp.AVG, group_dst=root)
            assert cd.equal(x, sum(of_all(5)) / SIZE if rank == root else values(rank, 5))
        with pytest.raises(ValueError, match="broadcast: can't specify both group_src and src"):
            dist.broadcast(x, 0, group_src=0)
        with pytest.raises(ValueError, match="broadcast: must specify src or group_src"):
            dist.broadcast(x)
        with pytest.raises(ValueError, match="group_src must be a rank of the group of 3, got 3"):
            dist.broadcast(x, group_src=3)

    threads.run(program, SIZE)


def test_gathers_are_in_the_order_of_ranks() -> None:
    """all_gather, all_gather_into_tensor, gather and scatter."""

    def program() -> None:
        rank = dist.get_rank()
        own, everything = values(rank, 2, 3), of_all(2, 3)
        found = [cd.empty(2, 3) for _ in range(SIZE)]
        dist.all_gather(found, own)
        assert all(cd.equal(a, b) for a, b in zip(found, everything, strict=True))
        joined, stacked = cd.empty(2 * SIZE, 3), cd.empty(SIZE, 2, 3)
        dist.all_gather_into_tensor(joined, own)
        dist.all_gather_into_tensor(stacked, own)
        assert cd.equal(joined, cd.cat(everything))
        assert cd.equal(stacked, cd.stack(everything))
        for root in range(SIZE):
            found = [cd.zeros(2, 3) for _ in range(SIZE)]
            dist.gather(own, found if rank == root else None, root)
            if rank == root:
                assert all(cd.equal(a, b) for a, b in zip(found, everything, strict=True))
            received = cd.empty(2, 3)
            dist.scatter(received, everything if rank == root else None, root)
            assert cd.equal(received, own)

    threads.run(program, SIZE)


def test_reduce_scatter_gives_each_rank_its_part() -> None:
    """From a list, and from one tensor, also of halves."""

    def program() -> None:
        rank = dist.get_rank()
        for dtype in (cd.float32, cd.float16, cd.int32):
            sent = values(rank, SIZE, 4, dtype=dtype)
            whole = reduce(DEFINITIONS[ReduceOp.SUM], of_all(SIZE, 4, dtype=dtype))
            got = cd.empty(4, dtype=dtype)
            dist.reduce_scatter(got, list(sent.unbind(0)))
            assert cd.equal(got, whole[rank])
            got = cd.empty(1, 4, dtype=dtype)
            dist.reduce_scatter_tensor(got, sent)
            assert cd.equal(got, whole[rank : rank + 1])

    threads.run(program, SIZE)


def test_all_to_all_exchanges_parts() -> None:
    """Lists of tensors of different shapes; rows of one tensor, equal or by split sizes."""

    def program() -> None:
        rank = dist.get_rank()
        sent = [cd.full((i + 1, rank + 1), 10.0 * rank + i) for i in range(SIZE)]
        got = [cd.empty(rank + 1, i + 1) for i in range(SIZE)]
        dist.all_to_all(got, sent)
        assert all(cd.equal(each, cd.full((rank + 1, i + 1), 10.0 * i + rank)) for i, each in enumerate(got))
        x, out = cd.arange(2 * SIZE) + 100 * rank, cd.empty(2 * SIZE, dtype=cd.int64)
        dist.all_to_all_single(out, x)
        assert out.tolist() == [100 * i + 2 * rank + j for i in range(SIZE) for j in range(2)]
        splits = list(range(SIZE))
        x, out = cd.full((sum(splits), 2), float(rank)), cd.empty(rank * SIZE, 2)
        dist.all_to_all_single(out, x, [rank] * SIZE, splits)
        assert out[:, 0].tolist() == [float(i) for i in range(SIZE) for _ in range(rank)]

    threads.run(program, SIZE)


def test_wrong_tensors_are_named() -> None:
    """Before anything is sent: types, devices, numbers of tensors, sizes and dtypes."""

    def program() -> None:
        x, three = cd.ones(2), [cd.ones(2) for _ in range(3)]
        cases: list[tuple[Any, type[Exception], str]] = [
            (lambda: dist.all_reduce([1.0]), TypeError, r"`tensor` of type candelabra\.Tensor"),
            (lambda: dist.all_reduce(cd.ones(2, device="meta")), ValueError, "device meta, which has no data"),
            (lambda: dist.all_gather(x, x), TypeError, r"`tensor_list` of type List\["),
            (lambda: dist.all_gather(three, x), ValueError, "a tensor for each of the 2 ranks, got 3"),
            (lambda: dist.all_gather([x, x.double()], x), ValueError, "usage of tensors with different dtypes"),
            (lambda: dist.all_gather([x, x[:1]], x), ValueError, r"the size of tensor, \[2\], got \[1\]"),
            (lambda: dist.all_gather_into_tensor(x, x), ValueError, "output tensor size must be equal to"),
            (lambda: dist.all_gather_into_tensor(x.int(), x), TypeError, "must have the same type as input"),
            (lambda: dist.reduce_scatter_tensor(x, x), ValueError, "must be the same size as output"),
            (lambda: dist.all_to_all_single(x[:1], x[:1]), ValueError, "does not divide equally across group"),
            (lambda: dist.all_to_all_single(x, x, [2], None), ValueError, "tensor splits not equal to group"),
            (lambda: dist.all_to_all_single(x, x, [2, 1]), ValueError, "Split sizes doesn't match total dim"),
        ]  # fmt: skip
        for call, error, text in cases:
            with pytest.raises(error, match=text):
                call()
        root = dist.get_rank() == 0
        some, none = ("destination", "source"), ("non-destination", "non-source")
        for name, call, words in (("gather_list", dist.gather, 0), ("scatter_list", dist.scatter, 1)):
            text = f"Argument ``{name}`` must be specified on {some[words]} rank"
            if not root:
                text = f"Argument ``{name}`` must NOT be specified on {none[words]} ranks"
            with pytest.raises(ValueError, match=text):
                call(x, None if root else [x, x])

    threads.run(program, 2)


def test_asynchronous_works_complete_in_order() -> None:
    """A tensor has its value after wait(), which may be called twice and in any order."""

    def program() -> None:
        tensors = [cd.full((10,), float(i)) for i in range(20)]
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        for work in reversed(works):
            assert work is not None
            assert work.wait()
            assert work.wait()
            assert work.is_completed()
            assert work.exception() is None
        assert [x[0].item() for x in tensors] == [float(SIZE * i) for i in range(20)]
        dist.barrier()

    threads.run(program, SIZE)


def test_memory_of_the_host_is_not_copied() -> None:
    """The engine writes into a contiguous tensor of the host, and into a copy of any other tensor."""
    for dtype in (cd.float32, cd.bfloat16, cd.bool, cd.complex64):
        x = cd.ones(4, 6, dtype=dtype)
        memory = EngineBuffer(x[1:3]).memory
        assert len(memory) == 12 * dtype.itemsize
        memory[:] = bytes(len(memory))
        assert x.to(cd.complex64).abs().sum() == 12
        EngineBuffer(x[:, 1:2]).memory[:] = bytes(4 * dtype.itemsize)
        assert x.to(cd.complex64).abs().sum() == 12


def test_works_under_way_are_completed_before_the_group_is_closed() -> None:
    """destroy_process_group() waits for them."""

    def program() -> Any:
        x = cd.ones(1000)
        works = [dist.all_reduce(x, async_op=True) for _ in range(20)]
        dist.destroy_process_group()
        return all(work is not None and work.is_success() for work in works), x[0].item()

    def started() -> Any:
        dist.init_process_group("threads")
        return program()

    assert threads.run(started, 2, init=False) == [(True, 2.0**20)] * 2
