"""DTensor: parts of tensors, the whole from its parts, and norms over parts. Ranks are threads."""

from __future__ import annotations

import copy
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from candelabra.distributed.tensor.experimental import implicit_replication

PLACEMENTS = [
    [Shard(0), Shard(1)], [Shard(0), Shard(0)], [Replicate(), Shard(-1)], [Shard(1), Replicate()],
    [Replicate(), Replicate()],
]  # fmt: skip


@pytest.mark.parametrize("placements", PLACEMENTS, ids=str)
@pytest.mark.parametrize("shape", [(7, 5), (1, 2), pytest.param((4, 4), marks=pytest.mark.thorough)], ids=str)
def test_the_whole_from_its_parts(placements: Any, shape: tuple[int, int]) -> None:
    """Sizes need not be divisible, and parts may be empty; norms are those of the whole."""
    whole = cd.arange(float(shape[0] * shape[1])).reshape(shape) + 1

    def program() -> int:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        part = distribute_tensor(whole, mesh, placements)
        assert tuple(part.shape) == shape
        assert part.placements == tuple(Shard(1) if p == Shard(-1) else p for p in placements)
        assert cd.equal(part.full_tensor(), whole)
        other = part.redistribute(mesh, [Shard(1), Shard(0)])
        assert cd.equal(other.full_tensor(), whole)
        norm = nn.utils.get_total_norm([part, whole])
        assert norm.item() == pytest.approx((2 * (whole**2).sum()).item() ** 0.5)
        return part.to_local().numel()

    counts = threads.run(program, 4)
    sharded = sum(placement.is_shard() for placement in placements)
    assert sum(counts) == whole.numel() * 2 ** (2 - sharded)


def test_the_tensor_of_the_first_rank_is_divided() -> None:
    """With src_data_rank=None, each rank divides its own."""

    def program() -> tuple[float, float]:
        mesh = init_device_mesh("cpu", (2,))
        own = cd.full((4,), float(dist.get_rank()))
        first = distribute_tensor(own, mesh, [Shard(0)])
        each = distribute_tensor(own, mesh, [Shard(0)], src_data_rank=None)
        return first.to_local().sum().item(), each.to_local().sum().item()

    assert threads.run(program, 2) == [(0.0, 0.0), (0.0, 2.0)]


def test_parts_from_ranks() -> None:
    """``from_local`` takes parts, replicas, or terms of a sum."""

    def program() -> None:
        mesh = init_device_mesh("cpu", (2,))
        own = cd.full((2, 3), 1.0 + dist.get_rank())
        assert DTensor.from_local(own, mesh, [Shard(1)]).full_tensor().tolist() == [[1.0] * 3 + [2.0] * 3] * 2
        assert DTensor.from_local(own, mesh, [Partial()]).full_tensor().tolist() == [[3.0] * 3] * 2
        assert DTensor.from_local(own, mesh).full_tensor() is not None

    threads.run(program, 2)


def test_gradients_and_optimizers() -> None:
    """Gradients reach the parts through ``full_tensor``, and an optimizer updates parts as tensors."""
    whole = cd.arange(6.0).reshape(3, 2)

    def program() -> Any:
        mesh = init_device_mesh("cpu", (2,))
        part = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
        (part.full_tensor() ** 2).sum().backward()
        assert isinstance(part.grad, DTensor)
        found = part.grad.full_tensor()
        optim.AdamW([part], lr=0.1).step()
        twin = copy.deepcopy(part)
        assert twin.placements == part.placements
        assert isinstance(part.detach(), DTensor)
        assert "placements=(Shard(dim=0),)" in repr(part)
        with cd.no_grad():
            part.copy_(whole)
            assert cd.equal(part.data.full_tensor(), whole)
        part.grad = None
        return found, twin.full_tensor().detach()

    plain = whole.clone().requires_grad_()
    (plain**2).sum().backward()  # the two ranks compute one loss together
    optim.AdamW([plain], lr=0.1).step()
    for gradient, updated in threads.run(program, 2):
        assert cd.equal(gradient, plain.grad)
        assert cd.allclose(updated, plain)


def test_sizes_are_those_of_the_whole() -> None:
    """As in PyTorch; ``to_local()`` has those of the part."""

    def program() -> None:
        part = distribute_tensor(cd.arange(15.0).view(5, 3), init_device_mesh("cpu", (2,)), [Shard(0)])
        rows = 3 if dist.get_rank() == 0 else 2
        assert (part.shape, part.size(), part.size(-1), part.dim()) == ((5, 3), (5, 3), 3, 2)
        assert (part.numel(), part.nelement(), len(part), part.stride(), part.stride(1)) == (15, 15, 5, (3, 1), 1)
        assert part.to_local().shape == (rows, 3)
        part.requires_grad_().grad = cd.ones(rows, 3)
        assert isinstance(part.grad, DTensor)
        assert part.grad.shape == (5, 3)
        with pytest.raises(RuntimeError, match=r"assigned grad has the size \[5, 3\], but this rank's part .* has \["):
            part.grad = cd.ones(5, 3)
        single = distribute_tensor(cd.tensor(1.0), init_device_mesh("cpu", (2,)))
        with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
            len(single)

    threads.run(program, 2)


def test_operations_return_dtensors() -> None:
    """On the parts where elements need no others; whole elsewhere. A result of an argument is that argument."""

    def program() -> None:
        whole = cd.arange(15.0).view(5, 3)
        x = distribute_tensor(whole, init_device_mesh("cpu", (2,)), [Shard(0)])
        for found in (x + 1, x.exp(), cd.zeros_like(x), x.clone(), x.detach(), x.double(), x * cd.tensor(2.0)):
            assert found.placements == (Shard(0),)
        for found in (x.sum(), x.t(), x.view(-1), x.new_zeros(2), x[1:], x.roll(1, 0), x.flatten()):
            assert found.placements == (Replicate(),)
        assert x.sum().item() == whole.sum().item()
        assert x.tolist() == whole.tolist()
        assert x.add_(1) is x
        assert x.cumsum_(0) is x
        x[0, 1:] = 7.0
        expected = (whole + 1).cumsum(0)
        expected[0, 1:] = 7.0
        assert cd.equal(x.full_tensor(), expected)
        same = distribute_tensor(whole, x.device_mesh)
        same.view(-1)[0].fill_(5.0)  # a view of replicas is one
        assert same.to_local()[0, 0].item() == 5.0

    threads.run(program, 2)


def test_the_overload_that_serves_a_call_says_where_it_runs() -> None:
    """``where`` selects on the parts, and finds the positions of elements in the whole; ``x.where`` and casts, too."""

    def program() -> None:
        whole = cd.arange(6.0).view(6, 1) - 2
        x = distribute_tensor(whole, init_device_mesh("cpu", (2,)), [Shard(0)])
        for found in (cd.where(x > 0, x, 0.0), x.where(x > 0, x), x.half(), x.type(cd.LongTensor), x.conj(), x.real):
            assert found.placements == (Shard(0),)
        rows, columns = cd.where(x > 0)
        assert rows.placements == (Replicate(),)
        assert (rows.tolist(), columns.tolist()) == ([3, 4, 5], [0, 0, 0])

    threads.run(program, 2)


def test_draws_are_equal_on_all_ranks() -> None:
    """Random numbers are those of the mesh's first rank, also for the gradient."""

    def program() -> Any:
        x = distribute_tensor(cd.ones(8, 4), init_device_mesh("cpu", (2,)), [Shard(0)]).requires_grad_()
        cd.nn.functional.dropout(x, 0.5).sum().backward()
        drawn = cd.rand_like(x.detach())
        return drawn.to_local().tolist(), x.detach().normal_().full_tensor().tolist(), x.grad.full_tensor().tolist()

    first, second = threads.run(program, 2)
    assert first == second
    assert {value for row in first[2] for value in row} == {0.0, 2.0}


def test_what_a_dtensor_refuses() -> None:
    """Plain tensors in a call, writes to gathered copies and to terms of a sum, other shapes in place, its memory."""

    def program() -> None:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(cd.ones(4, 3), mesh, [Shard(0)])
        with pytest.raises(RuntimeError, match=r"^add: got mixed candelabra.Tensor and DTensor, need to convert all"):
            x + cd.ones(4, 3)
        with implicit_replication():
            assert (x + cd.ones(4, 3)).full_tensor().tolist() == [[2.0] * 3] * 4
        with pytest.raises(
            RuntimeError, match=r"^fill_: this DTensor is a copy that view\(\) of a divided DTensor has"
        ):
            x.view(12).fill_(0.0)
        with pytest.raises(RuntimeError, match=r"^t_: the operation changes the shape of a DTensor in place, from \[4"):
            x.t_()
        terms = DTensor.from_local(cd.ones(2), mesh, [Partial()])
        with pytest.raises(
            RuntimeError, match=r"^add_: cannot write into terms of a sum: redistribute\(\) the DTensor"
        ):
            terms.add_(1)
        with pytest.raises(NotImplementedError, match=r"^data_ptr\(\): a rank has a part of the memory of a DTensor"):
            x.data_ptr()
        with pytest.raises(NotImplementedError, match=r"^__array__\(\): a rank has a part of the memory of a DTensor"):
            np.asarray(x)
        with pytest.raises(AttributeError, match=r"^a rank has a part of the memory of a DTensor: use to_local\(\)"):
            x.__array_interface__  # noqa: B018 # a property
        with pytest.raises(TypeError, match=r"all_reduce: tensor is a DTensor, but collectives move a rank's own"):
            dist.all_reduce(x)
        extreme = DTensor.from_local(cd.ones(2, requires_grad=True), mesh, [Partial("max")])
        with pytest.raises(NotImplementedError, match="only sums and averages have one"):
            extreme.full_tensor().sum().backward()

    threads.run(program, 2)


def test_what_a_call_uses_decides_where_it_runs() -> None:
    """Elements are gathered; dtype and device are a part's; history and attributes are the DTensor's own."""

    def program() -> None:
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(cd.ones(4, 3), mesh, [Shard(0)])
        for divided in (copy.copy(x), x.conj(), x.pin_memory()):
            assert divided.placements == (Shard(0),)
        assert x.new_zeros(2).placements == (Replicate(),)
        assert not x.is_pinned()
        assert x.nonzero(as_tuple=True)[0].numel() == 12
        for refused in (x.is_shared, x.share_memory_, lambda: x.resize_(12), lambda: x.as_strided((2,), (1,))):
            with pytest.raises(NotImplementedError, match="a rank has a part of the memory of a DTensor"):
                refused()

    threads.run(program, 2)


def test_wrong_placements() -> None:
    """The errors name the placement."""

    def program() -> None:
        mesh, x = init_device_mesh("cpu", (1,)), cd.ones(2)
        with pytest.raises(ValueError, match=r"`placements` must have the same length as `device_mesh.ndim`! 2 != 1"):
            distribute_tensor(x, mesh, [Shard(0), Shard(0)])
        with pytest.raises(ValueError, match=r"Shard\(dim=1\) of a tensor of 1 dims"):
            distribute_tensor(x, mesh, [Shard(1)])
        with pytest.raises(TypeError, match=r"a placement is Shard\(dim\), Replicate\(\) or Partial\(\), got 0"):
            distribute_tensor(x, mesh, [0])  # type: ignore[list-item]
        with pytest.raises(ValueError, match="a whole tensor cannot be divided into terms of a sum"):
            distribute_tensor(x, mesh, [Partial()])

    threads.run(program, 1)


def test_a_line_of_a_mesh() -> None:
    """It is the mesh of one dim with this rank; a rank outside the mesh has none."""

    def program() -> None:
        mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))
        if dist.get_rank() == 2:
            with pytest.raises(RuntimeError, match="rank 2 is not in the mesh"):
                mesh.line(0)
            return
        assert mesh.line(0).mesh.tolist() == [0, 1]
        assert mesh.line(0) is mesh.line(0)
        assert mesh.line(1).mesh_dim_names == ("b",)

    threads.run(program, 3)
