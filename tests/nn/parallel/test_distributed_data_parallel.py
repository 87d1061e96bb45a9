"""DistributedDataParallel: ranks are threads, and one test starts two processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.nn.parallel import DistributedDataParallel
from candelabra.utils.data import DistributedSampler

SIZE = 2


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32").tolist())


def network(seed: int = 0) -> Any:
    """Return a network of several layers with fixed weights."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(100 * seed + number, *p.shape))
    return net


class Branches(nn.Module):
    """Two branches, of which a call uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.never = nn.Linear(3, 1), nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x: Any, left: bool) -> Any:
        return {"out": [(self.left if left else self.right)(x)]}


def steps(net: Any, batches: list[list[Any]], **options: Any) -> tuple[list[float], list[Any]]:
    """Train on batches, each of which is a list of parts whose gradients add up. Return losses and parameters."""
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for parts in batches:
        optimizer.zero_grad(**options)
        total = 0.0
        for x, y in parts:
            loss = nn.functional.mse_loss(net(x), y)
            (loss / len(parts)).backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses, [p.detach().clone() for p in net.parameters()]


def batch(number: int, rank: int) -> Any:
    """Return the inputs and targets of one rank."""
    return numbers(1000 + 10 * number + rank, 6, 4), numbers(2000 + 10 * number + rank, 6, 2)


@pytest.mark.parametrize("cap", [25, 1e-4, 0])
@pytest.mark.parametrize("as_views", [False, True])
@pytest.mark.parametrize("set_to_none", [False, True])
def test_two_ranks_train_as_one_process(cap: float, as_views: bool, set_to_none: bool) -> None:
    """To the last bit where one process adds up both parts' gradients: with two ranks, sums have one order."""
    expected, parameters = steps(network(), [[batch(i, rank) for rank in range(SIZE)] for i in range(5)])

    def program() -> Any:
        rank = dist.get_rank()
        net = DistributedDataParallel(network(rank), bucket_cap_mb=cap, gradient_as_bucket_view=as_views)
        return steps(net, [[batch(i, rank)] for i in range(5)], set_to_none=set_to_none)

    (first, ours), (second, theirs) = threads.run(program, SIZE)
    assert [a + b for a, b in zip(first, second, strict=True)] == expected
    for p, q, r in zip(ours, theirs, parameters, strict=True):
        assert cd.equal(p, q)
        assert cd.equal(p, r)


def images(number: int, rank: int) -> Any:
    """Return small images and their classes, for one rank."""
    classes = np.random.default_rng(number).integers(0, 5, (4, 6))
    return numbers(3000 + 10 * number + rank, 6, 1, 8, 8), cd.tensor(classes[rank].tolist())


def convolutions() -> Any:
    """Return a convolutional network with fixed weights."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(0.3 * numbers(number, *p.shape))
    return net


def test_four_ranks_train_a_cnn_as_one_process_with_the_whole_batch() -> None:
    """The order of sums differs: float64 agrees to 1e-12, since each of 20 steps adds a few roundings of 1e-16."""

    def losses_of(net: Any, batches: list[Any]) -> list[float]:
        optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        found = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x.double()), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    whole = [[cd.cat(each) for each in zip(*[images(i, rank) for rank in range(4)], strict=True)] for i in range(20)]
    expected = losses_of(convolutions().double(), whole)

    def program() -> list[float]:
        net = DistributedDataParallel(convolutions().double(), bucket_cap_mb=1e-3)
        return losses_of(net, [images(i, dist.get_rank()) for i in range(20)])

    found = np.mean(threads.run(program, 4), axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_buckets_take_the_order_in_which_gradients_are_ready() -> None:
    """After the first step, that of rank 0, on every rank; and they are small enough."""

    def program() -> Any:
        net = DistributedDataParallel(network(), bucket_cap_mb=1e-4)
        assert net.reducer is not None
        before = [bucket.indices for bucket in net.reducer.buckets]
        net.reducer._order = []
        for _ in range(2):
            net(numbers(1, 3, 4)).sum().backward()
        order = list(net.reducer._order)
        after = [bucket.indices for bucket in net.reducer.buckets]
        net(numbers(1, 3, 4))
        return before, after, order

    (before, after, order), other = threads.run(program, SIZE)
    assert (before, after) == other[:2]
    assert [index for indices in before for index in indices] == [5, 4, 3, 2, 1, 0]
    assert [index for indices in after for index in indices] == order
    assert len(after) > 2


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("debug", [False, True])
def test_large_gradients_are_averaged_in_their_own_memory(
    cores: int, debug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of 1 MiB and more are not copied; those that a rank lacks are zeros, and other layouts keep theirs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    if debug:
        monkeypatch.setenv("CANDELABRA_DISTRIBUTED_DEBUG", "DETAIL")

    def program() -> Any:
        rank = dist.get_rank()
        net = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 3))
        model = DistributedDataParallel(net)
        assert [len(bucket.large) for bucket in model.reducer.buckets if bucket.large] == [1]
        memory: list[int] = []
        weight = net[0].weight
        weight.register_post_accumulate_grad_hook(lambda p: memory.append(p.grad.data_ptr()))
        found = []
        for step in range(3):
            if step == 1:
                weight.grad = cd.zeros(512, 512).t()  # as others may leave it
                layout = weight.grad.stride()
            x = cd.full((2, 512), 1.0 + rank + step)
            model(x).sum().backward()
            expected = cd.cat([cd.full((2, 512), 1.0 + r + step) for r in range(2)])
            plain = cd.autograd.grad(net(expected).sum() / 2, [weight])[0]
            assert cd.allclose(weight.grad, plain, rtol=1e-5)
            assert step != 1 or weight.grad.stride() == layout
            found.append(weight.grad.sum().item())
            if step != 1:
                assert weight.grad.data_ptr() == memory[-1]
            model.zero_grad()
        return found

    first, second = threads.run(program, 2)
    assert first == second


def test_no_sync_adds_up_gradients_of_one_rank() -> None:
    """The first backward pass outside averages the sums."""
    expected = [g.clone() for g in _gradients(network(), [batch(i, rank) for i in range(3) for rank in range(SIZE)])]

    def program() -> Any:
        rank = dist.get_rank()
        net = DistributedDataParallel(network())
        with net.no_sync():
            for number in range(2):
                x, y = batch(number, rank)
                nn.functional.mse_loss(net(x), y).backward()
        alone = [p.grad.clone() for p in net.parameters()]
        x, y = batch(2, rank)
        nn.functional.mse_loss(net(x), y).backward()
        return alone, [p.grad for p in net.parameters()]

    (alone, ours), (other, theirs) = threads.run(program, SIZE)
    assert not any(cd.equal(a, b) for a, b in zip(alone, other, strict=True))
    for g, h, e in zip(ours, theirs, expected, strict=True):
        assert cd.equal(g, h)
        assert cd.allclose(g, e / SIZE, rtol=1e-5, atol=1e-6)


def _gradients(net: Any, batches: list[Any]) -> list[Any]:
    for x, y in batches:
        nn.functional.mse_loss(net(x), y).backward()
    return [p.grad for p in net.parameters()]


def test_buffers_are_those_of_rank_0() -> None:
    """At the construction and before each forward pass, unless broadcast_buffers=False."""

    def program(broadcast: bool) -> Any:
        rank = dist.get_rank()
        layer = nn.BatchNorm1d(3)
        layer.running_mean.fill_(float(rank))
        net = DistributedDataParallel(layer, broadcast_buffers=broadcast)
        assert layer.running_mean.tolist() == [0.0] * 3
        net(numbers(rank, 5, 3))
        own = layer.running_mean.clone()
        with cd.no_grad():
            net(numbers(rank, 5, 3))
        return own, layer.running_mean.clone(), int(layer.num_batches_tracked)

    (own, after, count), (other, others, _) = threads.run(program, SIZE, True)
    assert count == 2
    assert not cd.equal(own, other)
    momentum = 0.1
    assert cd.allclose(others, (1 - momentum) * own + other, atol=1e-6)  # from the mean of rank 0
    assert not cd.equal(after, others)
    (own, _, _), (other, others, _) = threads.run(program, SIZE, False)
    assert cd.allclose(others, (1 - momentum) * other + other, atol=1e-6)


@pytest.mark.parametrize("option", ["find_unused_parameters", "static_graph"])
def test_parameters_that_some_ranks_do_not_use(option: str) -> None:
    """A gradient is averaged with zeros of ranks without one; a parameter that no rank uses keeps its gradient."""

    def program() -> Any:
        rank = dist.get_rank()
        net = DistributedDataParallel(Branches(), **{option: True})
        x = numbers(rank, 4, 3)
        for _ in range(2):
            net.zero_grad()
            net.module.never.weight.grad = cd.full((1, 3), 5.0)
            net(x, rank == 0)["out"][0].sum().backward()
        return net.module.left.weight.grad, net.module.right.weight.grad, net.module.never.weight.grad, x.sum(0) / SIZE

    ours, theirs = threads.run(program, SIZE)
    for left, right, never, _ in (ours, theirs):
        assert cd.allclose(left[0], ours[3])
        assert cd.allclose(right[0], theirs[3])
        assert never.tolist() == [[5.0] * 3]


def test_unused_parameters_are_an_error_without_the_option() -> None:
    """The next forward pass names them."""

    def program() -> None:
        net = DistributedDataParallel(Branches())
        net(numbers(0, 4, 3), True)["out"][0].sum().backward()
        text = r"Expected to have finished reduction in the prior iteration.*never\.weight|right\.bias"
        with pytest.raises(RuntimeError, match=text) as raised:
            net(numbers(0, 4, 3), True)
        missing = re.sub(r".*receive grad: ", "", str(raised.value)).split(", ")
        assert sorted(missing) == ["never.bias", "never.weight", "right.bias", "right.weight"]

    threads.run(program, SIZE)


def test_a_second_backward_pass_of_one_forward_is_an_error() -> None:
    """While the first one is incomplete, a parameter whose gradient arrives twice is named."""

    def program() -> None:
        net = DistributedDataParallel(Branches())
        loss = net(numbers(0, 4, 3), True)["out"][0].sum()
        loss.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="mark a variable ready only once: the parameter 'left"):
            loss.backward()

    threads.run(program, SIZE)


def test_passes_without_gradients_send_none() -> None:
    """Under no_grad, in evaluation, and forward passes without a backward pass."""

    def program() -> None:
        net = DistributedDataParallel(network())
        with cd.no_grad():
            net(numbers(0, 3, 4))
        net(numbers(0, 3, 4))
        net(numbers(0, 3, 4)).sum().backward()
        assert net.module[0].weight.grad is not None
        assert next(iter(net.state_dict())) == "module.0.weight"

    threads.run(program, SIZE)


def test_frozen_and_ignored_parameters_are_left_alone() -> None:
    """A parameter without a gradient, and those that the module lists."""

    def program() -> Any:
        rank = dist.get_rank()
        net = Branches()
        net.left.weight.requires_grad_(False)
        net._ddp_params_and_buffers_to_ignore = ["right.bias"]
        with cd.no_grad():
            net.right.bias.fill_(float(rank))
        wrapped = DistributedDataParallel(net, find_unused_parameters=True)
        wrapped(numbers(rank, 2, 3), False)["out"][0].sum().backward()
        return net.right.bias.item(), net.right.bias.grad.item(), net.right.weight.grad

    ours, theirs = threads.run(program, SIZE)
    assert (ours[0], theirs[0]) == (0.0, 1.0)
    assert ours[1] == 2.0
    assert cd.equal(ours[2], theirs[2])


def test_one_rank_calls_the_module_itself() -> None:
    """There is nothing to average."""

    def program() -> Any:
        net = DistributedDataParallel(network())
        assert net.reducer is None
        net(numbers(0, 3, 4)).sum().backward()
        with net.no_sync():
            assert not net.require_backward_grad_sync
        return [p.grad for p in net.parameters()]

    alone = network()
    alone(numbers(0, 3, 4)).sum().backward()
    (found,) = threads.run(program, 1)
    assert all(cd.equal(g, p.grad) for g, p in zip(found, alone.parameters(), strict=True))


@pytest.mark.usefixtures("lantern")
def test_a_device_with_memory_of_its_own() -> None:
    """Inputs are moved to the one device of the rank."""

    def program() -> Any:
        rank = dist.get_rank()
        where = f"lantern:{rank}"
        net = DistributedDataParallel(network().to(where), device_ids=[where])
        out = net(numbers(rank, 3, 4))
        assert str(out.device) == where
        out.sum().backward()
        return [p.grad.cpu() for p in net.parameters()]

    ours, theirs = threads.run(program, SIZE)
    assert all(cd.equal(g, h) for g, h in zip(ours, theirs, strict=True))


def refused(build: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Expect an error on every rank."""

    def program() -> None:
        with pytest.raises(error, match=text):
            build()

    threads.run(program, SIZE)


@pytest.mark.parametrize(
    "name", ["mixed_precision", "device_mesh", "delay_all_reduce_named_params", "param_to_hook_all_reduce"]
)
def test_unsupported_arguments(name: str) -> None:
    """The error names the argument."""
    refused(
        lambda: DistributedDataParallel(network(), **{name: object()}),
        NotImplementedError,
        f"DistributedDataParallel: {name} is not supported yet",
    )


def test_wrong_modules() -> None:
    """Without parameters; with other parameters on another rank; on several devices; without a group."""
    refused(
        lambda: DistributedDataParallel(nn.Tanh()),
        RuntimeError,
        "is not needed when a module doesn't have any parameters that require a gradient",
    )
    refused(
        lambda: DistributedDataParallel(nn.Linear(2, 2, bias=dist.get_rank() == 0)),
        RuntimeError,
        "Rank 0 has 2 params, while rank 1 has inconsistent 1 params",
    )
    refused(
        lambda: DistributedDataParallel(nn.Linear(2, 2 + dist.get_rank())),
        RuntimeError,
        r"params\[0\], 'weight', of rank 1 with sizes \[3, 2\] .* not to match .* rank 0, \[2, 2\]",
    )
    refused(
        lambda: DistributedDataParallel(network(), device_ids=[0, 1]),
        ValueError,
        r"device_ids can only be None or contain a single element, got \[0, 1\]",
    )
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(network())


def test_the_sampler_asks_the_process_group() -> None:
    """Without arguments each rank gets its own indices; they are disjoint."""

    def program() -> list[int]:
        return list(DistributedSampler(range(10), shuffle=False))

    assert threads.run(program, SIZE) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(10))


PROGRAM = """
import candelabra.distributed as dist
from candelabra.nn.parallel import DistributedDataParallel
from tests.nn.parallel.test_distributed_data_parallel import batch, network, steps

dist.init_process_group("mpi")
rank = dist.get_rank()
net = DistributedDataParallel(network(rank), bucket_cap_mb=1e-4)
losses, parameters = steps(net, [[batch(i, rank)] for i in range(5)])
found = [None, None]
dist.all_gather_object(found, [losses, parameters])
if rank == 0:
    expected, weights = steps(network(), [[batch(i, r) for r in range(2)] for i in range(5)])
    assert [a + b for a, b in zip(found[0][0], found[1][0])] == expected
    for mine, other, one in zip(found[0][1], found[1][1], weights):
        assert bool((mine == one).all()) and bool((other == one).all())
    print("equal")
"""


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    """Over MPI, with overlapping buckets: losses and parameters are those of one process, to the last bit."""
    (tmp_path / "train.py").write_text(PROGRAM)
    root = str(Path(__file__).parents[3])
    line = [sys.executable, "-m", "candelabra", "run", "-n", "2", str(tmp_path / "train.py")]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": root}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "equal\n"
