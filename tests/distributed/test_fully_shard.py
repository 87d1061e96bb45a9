"""fully_shard: the parameters of one process, in shards. Ranks are threads; one test measures processes."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from candelabra.distributed.tensor import DTensor, init_device_mesh
from candelabra.distributed.tensor._dtensor import local_of
from candelabra.nn.parallel import DistributedDataParallel

SIZE = 4


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


class Network(nn.Module):
    """Layers whose sizes four ranks cannot divide evenly, one without parameters, and one that occurs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 7), nn.Sequential(nn.Linear(7, 7), nn.Tanh(), nn.LayerNorm(7))
        self.tied = nn.Linear(7, 7)
        self.scale = nn.Parameter(cd.ones(1))
        self.last = nn.Linear(7, 2)
        self.tied.weight = self.first_of_second()

    def first_of_second(self) -> Any:
        """Return the weight that two layers share."""
        return self.second[0].weight

    def forward(self, x: Any) -> Any:
        hidden = self.second(self.second(self.first(x)))
        return self.last(self.tied(hidden) * self.scale)


def network() -> Any:
    """Return the network with fixed weights."""
    net = Network().double()
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape) * 0.5)
    return net


def train(net: Any, ranks: list[int], steps: int = 3) -> None:
    """Train on the batches of some ranks, with gradients clipped to a norm."""
    optimizer = optim.AdamW(net.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in ranks:
            ((net(numbers(100 + 10 * step + rank, 3, 5)) ** 2).mean() / len(ranks)).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()


def shard(net: Any, **options: Any) -> Any:
    """Shard the layers, and the rest."""
    fully_shard(net.first, **options)
    fully_shard(net.last, **options)
    return fully_shard(net, **options)


def reference(ranks: int = SIZE) -> list[Any]:
    """Return the parameters of one process."""
    net = network()
    train(net, list(range(ranks)))
    return [p.detach() for p in net.parameters()]


@pytest.mark.parametrize(
    ("reshard", "mesh_shape"),
    [
        (True, (SIZE,)),
        (False, (2, 2)),
        pytest.param(False, (SIZE,), marks=pytest.mark.thorough),
        pytest.param(True, (2, 2), marks=pytest.mark.thorough),
    ],
)
def test_parameters_are_those_of_one_process(reshard: bool, mesh_shape: tuple[int, ...]) -> None:
    """And those of DistributedDataParallel, also with replicas of shards; each rank keeps its shards only."""

    def program() -> list[Any]:
        mesh = init_device_mesh("cpu", mesh_shape)
        net = shard(network(), mesh=mesh, reshard_after_forward=reshard)
        train(net, [dist.get_rank()])
        assert all(isinstance(p, DTensor) and p._is_param for p in net.parameters())
        assert net.tied.weight is net.second[0].weight
        whole = sum(p.numel() for p in network().parameters())
        assert [p.shape for p in net.parameters()] == [p.shape for p in network().parameters()]
        assert sum(p.to_local().numel() for p in net.parameters()) < whole / mesh_shape[-1] + 30
        ddp = DistributedDataParallel(network())
        train(ddp, [dist.get_rank()])
        found = [p.full_tensor() for p in net.parameters()]
        assert all(cd.allclose(p, q) for p, q in zip(found, ddp.parameters(), strict=True))
        return found

    for found in threads.run(program, SIZE):
        assert all(cd.allclose(p, q) for p, q in zip(found, reference(), strict=True))


def test_whole_parameters_are_freed() -> None:
    """After the forward pass only shards are in memory, although the graph needs the weights; then they come back."""

    def program() -> None:
        net = shard(network())
        seen = []
        net.last.register_forward_pre_hook(lambda module, inputs: seen.append(weakref.ref(module.weight)))
        out = net(numbers(0, 3, 5))
        gc.collect()
        assert [each() for each in seen] == [None]
        assert net.last._fsdp_state.group.full is None
        (out**2).sum().backward()
        assert net.last.weight.grad is not None
        assert net.last._fsdp_state.group.full is None

    threads.run(program, 2)


def test_gradients_may_stay_whole() -> None:
    """Without synchronization the passes add up on each rank, and the next pass averages the sum."""

    def program() -> list[Any]:
        net, rank = shard(network()), dist.get_rank()
        net.set_requires_gradient_sync(False)
        (net(numbers(rank, 3, 5)) ** 2).mean().backward()
        assert net.last.weight.grad is None
        net.set_requires_gradient_sync(True)
        (net(numbers(10 + rank, 3, 5)) ** 2).mean().backward()
        return [p.grad.full_tensor() for p in net.parameters()]

    net = network()
    for seed in (0, 1, 10, 11):
        ((net(numbers(seed, 3, 5)) ** 2).mean() / 2).backward()
    for found in threads.run(program, 2):
        assert all(cd.allclose(g, p.grad) for g, p in zip(found, net.parameters(), strict=True))


def test_gradients_are_scattered_during_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """They arrive at the end of it, of several passes too; hooks and ``autograd.grad`` get them at once."""
    begun: list[Any] = []
    right = dist.reduce_scatter_tensor

    def counted(*args: Any, **kwargs: Any) -> Any:
        begun.append(kwargs)
        return right(*args, **kwargs)

    monkeypatch.setattr(dist, "reduce_scatter_tensor", counted)

    def program() -> None:
        net, x = shard(network()), numbers(dist.get_rank(), 3, 5)
        seen: list[Any] = []
        net.first.register_full_backward_pre_hook(lambda *_: seen.append(net.last.weight.grad))
        loss = (net(x) ** 2).mean()
        found = cd.autograd.grad(loss, [net.last._fsdp_state.group.shards[0]], retain_graph=True)[0]
        seen.clear()
        loss.backward(retain_graph=True)
        assert seen == [None]  # the last layer's gradients are on their way
        assert cd.allclose(net.last.weight.grad.to_local(), found)
        loss.backward()
        assert cd.allclose(net.last.weight.grad.to_local(), 2 * found)
        net.zero_grad()
        net.last.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.to_local().clone()))
        (net(x) ** 2).mean().backward()
        assert cd.allclose(local_of(seen[-1] if seen[-1] is not None else seen[-2]), found)
        net.first.weight.requires_grad_(False)

    threads.run(program, 2)
    assert all(kwargs == {"async_op": True} for kwargs in begun)


def test_mixed_precision() -> None:
    """Inputs and gathered parameters have the policy's dtype, shards and gradients their own."""

    def program() -> None:
        inner = MixedPrecisionPolicy(param_dtype=cd.bfloat16, reduce_dtype=cd.float32)
        net = network().float()
        fully_shard(net.first, mp_policy=inner)
        fully_shard(net, mp_policy=MixedPrecisionPolicy(cd.bfloat16, cd.float32, cd.float32))
        seen = []
        net.first.register_forward_pre_hook(lambda module, inputs: seen.extend([inputs[0].dtype, module.weight.dtype]))
        out = net(numbers(dist.get_rank(), 3, 5).float())
        assert seen == [cd.bfloat16, cd.bfloat16]
        assert out.dtype is cd.float32
        out.sum().backward()
        assert {p.dtype for p in net.parameters()} == {p.grad.dtype for p in net.parameters()} == {cd.float32}

    threads.run(program, 2)


def test_methods_of_a_sharded_module() -> None:
    """Parameters can be gathered ahead of use, and freed; it keeps its class, and evaluation needs no graph."""

    def program() -> None:
        net = shard(network())
        assert isinstance(net, Network)
        assert isinstance(net, FSDPModule)
        net.set_reshard_after_forward(False)
        handle = net.last.unshard(async_op=True)
        handle.wait()
        assert net.last._fsdp_state.group.full is not None
        with cd.no_grad():
            out = net(numbers(0, 3, 5))
        net.first.unshard()
        assert net.first.weight.shape == (7, 5)
        net.first.reshard()
        assert isinstance(net.first.weight, DTensor)
        assert cd.allclose(out, network()(numbers(0, 3, 5)))
        assert cd.nn.Sequential(net.last)(cd.ones(1, 7).double()).shape == (1, 2)

    threads.run(program, 2)


def test_ignored_parameters_and_modules_without() -> None:
    """An ignored parameter stays whole; a module whose parameters are taken has none of its own."""

    def program() -> None:
        net = network()
        fully_shard(net, ignored_params=[net.scale])
        assert not isinstance(net.scale, DTensor)
        outer = fully_shard(nn.Sequential(fully_shard(nn.Linear(3, 3))))
        assert outer._fsdp_state.group is None
        assert outer.unshard(async_op=True).wait() is None
        outer(cd.ones(2, 3)).sum().backward()
        assert outer[0].weight.grad.full_tensor().shape == (3, 3)

    threads.run(program, 2)


@pytest.mark.parametrize("kind", [optim.Muon, optim.Adafactor])
def test_optimizers_of_whole_matrices_refuse_shards(kind: Any) -> None:
    """Their steps depend on all elements of a parameter. A parameter that every rank has whole is updated."""

    def program() -> None:
        net = fully_shard(nn.Linear(3, 4, bias=False))
        net(cd.ones(2, 3)).sum().backward()
        before = net.weight.full_tensor()
        with pytest.raises(NotImplementedError, match=f"{kind.__name__} needs whole parameters, but got shards"):
            kind(net.parameters()).step()
        assert cd.equal(net.weight.full_tensor(), before)
        whole = nn.Linear(3, 4, bias=False)
        whole(cd.ones(2, 3)).sum().backward()
        kind(whole.parameters()).step()

    threads.run(program, 2)


def test_wrong_calls() -> None:
    """The errors say what fully_shard expects."""

    def program() -> None:
        with pytest.raises(ValueError, match="does not support containers that do not implement forward: ModuleList"):
            fully_shard(nn.ModuleList([nn.Linear(1, 1)]))
        with pytest.raises(ValueError, match="fully_shard has already been applied to FSDPLinear"):
            fully_shard(fully_shard(nn.Linear(1, 1)))
        with pytest.raises(NotImplementedError, match="shard_placement_fn is not supported: dim 0 of parameters is"):
            fully_shard(nn.Linear(1, 1), shard_placement_fn=lambda p: None)
        mixed = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1).double())
        with pytest.raises(ValueError, match=r"one dtype and device in each call, got .*float32 on cpu, .*float64"):
            fully_shard(mixed)
        with pytest.raises(ValueError, match="fully_shard expects a 1D or 2D DeviceMesh but got"):
            fully_shard(nn.Linear(1, 1), mesh=init_device_mesh("cpu", (1, 1, 1)))

    threads.run(program, 1)
