"""Tensor parallelism: outputs, gradients and steps of one process. Ranks are threads."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.tensor import DTensor, Partial, Replicate, Shard, init_device_mesh
from candelabra.distributed.tensor._movements import moved
from candelabra.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

SIZE = 2


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


class Block(nn.Module):
    """An embedding, a normalization, two linear layers, and a classifier. No size is divisible by the ranks."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6)
        self.up, self.down = nn.Linear(6, 9, bias), nn.Linear(9, 6, bias)
        self.head = nn.Linear(6, 5, bias)

    def forward(self, index: Any) -> Any:
        x = self.norm(self.embedding(index))
        return self.head(x + self.down(self.up(x).tanh()))


def block(bias: bool = True) -> Any:
    """Return the network with fixed weights."""
    net = Block(bias).double()
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape))
    return net


def index() -> Any:
    """Return a batch of sequences."""
    return cd.tensor(np.random.default_rng(5).integers(0, 11, (3, 4)).tolist())


PLANS: dict[str, Any] = {
    "rows of the embedding": lambda: {
        "embedding": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    },
    "columns of the embedding": lambda: {
        "embedding": ColwiseParallel(output_layouts=Replicate()), "up": ColwiseParallel(), "down": RowwiseParallel(),
    },
    "sequence": lambda: {
        "embedding": RowwiseParallel(output_layouts=Shard(1)), "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Shard(1)),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    },
}  # fmt: skip


@pytest.mark.parametrize("bias", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("plan", PLANS)
def test_training_is_that_of_one_process(plan: str, bias: bool) -> None:
    """Loss, gradients and updated parameters, though each rank has a part of the weights."""

    def train(net: Any) -> Any:
        optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (net(index()) ** 2).mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_([p for p in net.parameters() if not replicated(p)], 1e9)
            optimizer.step()
        return loss, norm

    def replicated(p: Any) -> bool:
        return isinstance(p, DTensor) and all(each.is_replicate() for each in p.placements)

    def program() -> Any:
        net = parallelize_module(block(bias), init_device_mesh("cpu", (SIZE,)), PLANS[plan]())
        assert isinstance(net.up.weight, DTensor)
        assert net.up.weight.to_local().numel() < net.up.weight.numel()
        loss, _ = train(net)
        whole = [p.full_tensor() if isinstance(p, DTensor) else p for p in net.parameters()]
        return loss.detach(), [p.detach() for p in whole]

    plain = block(bias)
    expected, _ = train(plain)
    for loss, parameters in threads.run(program, SIZE):
        assert cd.allclose(loss, expected)
        for p, q in zip(parameters, plain.parameters(), strict=True):
            assert cd.allclose(p, q)


def test_more_ranks_than_rows() -> None:
    """A rank without rows of an embedding gives zeros."""

    def program() -> Any:
        net = nn.Embedding(2, 3)
        with cd.no_grad():
            net.weight.copy_(cd.arange(6.0).reshape(2, 3))
        parallelize_module(net, None, RowwiseParallel())
        out = net(cd.tensor([1, 0, 1]))
        out.sum().backward()
        return out.detach().tolist(), net.weight.grad.full_tensor().tolist()

    for out, gradient in threads.run(program, 3):
        assert out == [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        assert gradient == [[1.0] * 3, [2.0] * 3]


def test_names_with_stars() -> None:
    """A pattern stands for one part of a name in each place."""

    def program() -> None:
        net = nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4)))
        parallelize_module(net, None, {"*.0": ColwiseParallel(output_layouts=Replicate())})
        assert all(isinstance(layer[0].weight, DTensor) for layer in net)
        assert net(cd.ones(2, 4)).shape == (2, 4)

    threads.run(program, SIZE)


def test_movements_between_placements() -> None:
    """From each placement to each other, and back for the gradient."""
    whole = numbers(0, 4, 3)

    def program() -> None:
        mesh, rank = init_device_mesh("cpu", (SIZE,)), dist.get_rank()
        x = whole.narrow(0, 2 * rank, 2).clone().requires_grad_()
        columns = moved(x, mesh, Shard(0), Shard(1))
        assert cd.equal(columns, whole.narrow(1, 2 * rank, 2 - rank))
        (columns**2).sum().backward()
        assert cd.allclose(x.grad, 2 * x)
        assert moved(x, mesh, Shard(0), Shard(0)) is x
        with pytest.raises(NotImplementedError, match=r"does not move tensors from Replicate\(\) to Partial"):
            moved(x, mesh, Replicate(), Partial())

    threads.run(program, SIZE)


def test_wrong_plans() -> None:
    """The errors name the layer, the mesh, or the argument."""

    def program() -> None:
        net = block()
        with pytest.raises(ValueError, match="the plan has 'nothing', but the module has no such module inside"):
            parallelize_module(net, None, {"nothing": ColwiseParallel()})
        for style in (ColwiseParallel(), RowwiseParallel()):
            with pytest.raises(NotImplementedError, match=r"currently only support nn\.Linear and nn\.Embedding!"):
                parallelize_module(net, None, {"norm": style})
        with pytest.raises(ValueError, match=r"expects a mesh of one dim, got .*: pass mesh\['name'\]"):
            parallelize_module(net, init_device_mesh("cpu", (1, 1)), ColwiseParallel())
        with pytest.raises(NotImplementedError, match="src_data_rank must be 0"):
            parallelize_module(net, None, {}, src_data_rank=None)
        for kind in (ColwiseParallel, RowwiseParallel, SequenceParallel):
            with pytest.raises(NotImplementedError, match=f"{kind.__name__}: use_local_output must be True"):
                kind(use_local_output=False)
        with pytest.raises(NotImplementedError, match="an Embedding with max_norm, padding_idx or scale_grad_by_freq"):
            parallelize_module(nn.Embedding(3, 3, padding_idx=0), None, RowwiseParallel())

    threads.run(program, 1)


def test_sharding_over_tensor_parallelism() -> None:
    """On a mesh of two dims: losses, whole parameters and the norm of the gradient are those of one process."""

    def train(net: Any, batches: list[Any]) -> list[float]:
        optimizer = optim.AdamW(net.parameters(), lr=0.05)
        norms = []
        for _ in range(3):
            optimizer.zero_grad()
            for batch in batches:
                ((net(batch) ** 2).mean() / len(batches)).backward()
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.5).item())
            optimizer.step()
        return norms

    batches = [index(), (index() + 3) % 11]

    def program() -> Any:
        mesh = init_device_mesh("cpu", (2, SIZE), mesh_dim_names=("data", "tensor"))
        net = parallelize_module(block(), mesh["tensor"], PLANS["sequence"]())
        for layer in (net.embedding, net.up, net.down):
            fully_shard(layer, mesh=mesh["data"])
        fully_shard(net, mesh=mesh["data"])
        assert all(p.shape == q.shape for p, q in zip(net.parameters(), block().parameters(), strict=True))
        assert net.up.weight.to_local().shape in {(3, 6), (2, 6)}  # of 5 and 4 rows for each rank of "tensor"
        norms = train(net, [batches[mesh.get_local_rank("data")]])
        return norms, [p.full_tensor().detach() for p in net.parameters()]

    whole = block()
    expected = train(whole, batches)
    for norms, found in threads.run(program, 2 * SIZE):
        assert norms == pytest.approx(expected)
        assert all(cd.allclose(a, b) for a, b in zip(found, whole.parameters(), strict=True))
