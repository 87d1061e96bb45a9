"""DTensor: parts of tensors, the whole from its parts, and norms over parts. Ranks are threads."""

from __future__ import annotations

import copy
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

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
    (2 * (plain**2).sum()).backward()  # each of the two ranks has the loss
    optim.AdamW([plain], lr=0.1).step()
    for gradient, updated in threads.run(program, 2):
        assert cd.equal(gradient, plain.grad)
        assert cd.allclose(updated, plain)


def test_sizes_are_those_of_the_whole() -> None:
    """As in PyTorch; operations compute on the part, whose sizes ``to_local()`` has."""

    def program() -> None:
        part = distribute_tensor(cd.arange(15.0).view(5, 3), init_device_mesh("cpu", (2,)), [Shard(0)])
        rows = 3 if dist.get_rank() == 0 else 2
        assert (part.shape, part.size(), part.size(-1), part.dim()) == ((5, 3), (5, 3), 3, 2)
        assert (part.numel(), part.nelement(), len(part), part.stride(), part.stride(1)) == (15, 15, 5, (3, 1), 1)
        local = part.to_local()
        assert local.shape == (rows, 3)
        for same in (
            part + 0, cd.zeros_like(part) + part, part.view(-1).view(rows, 3), part.reshape(rows, 3), part[:],
            cd.cat(part.chunk(2)), cd.rand_like(part) * 0 + part, part.flatten().view(rows, 3), part.t().t(),
        ):  # fmt: skip
            assert cd.equal(same, local)
        assert cd.equal(nn.functional.linear(part, cd.eye(3)), local)
        part.requires_grad_().grad = cd.ones(rows, 3)
        assert isinstance(part.grad, DTensor)
        assert part.grad.shape == (5, 3)
        single = distribute_tensor(cd.tensor(1.0), init_device_mesh("cpu", (2,)))
        with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
            len(single)

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
