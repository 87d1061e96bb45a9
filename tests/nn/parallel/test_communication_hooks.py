"""Communication hooks of DistributedDataParallel: what travels, and what gradients come out. Ranks are threads."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from candelabra.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from candelabra.nn.parallel import DistributedDataParallel

SIZE = 2


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32").tolist())


def network() -> Any:
    """Return a network with fixed weights."""
    net = nn.Sequential(nn.Linear(12, 10), nn.Tanh(), nn.Linear(10, 2))
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape))
    return net


def gradients(state: Any, hook: Any, cap: float = 25) -> list[Any]:
    """Return the gradients of each rank after a backward pass with a hook; no hook for None."""

    def program() -> list[Any]:
        net = DistributedDataParallel(network(), bucket_cap_mb=cap)
        if hook is not None:
            net.register_comm_hook(state, hook)
        (net(numbers(100 + dist.get_rank(), 5, 12)) ** 2).mean().backward()
        return [p.grad for p in net.parameters()]

    return threads.run(program, SIZE)


@pytest.mark.parametrize(
    ("hook", "digits"),
    [
        (hooks.allreduce_hook, 24),
        (hooks.fp16_compress_hook, 11),
        (hooks.bf16_compress_hook, 8),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), 11),
        (hooks.bf16_compress_wrapper(hooks.allreduce_hook), 8),
    ],
)
def test_gradients_are_averages(hook: Any, digits: int) -> None:
    """Of as many binary digits as the compressed dtype has: each addend and the sum are rounded once."""
    plain, found = gradients(None, None), gradients(None, hook, 1e-4)
    for mine, others, exact in zip(*found, plain[0], strict=True):
        assert cd.equal(mine, others)
        assert mine.dtype is cd.float32
        assert (mine - exact).abs().max() <= 4 * 2.0**-digits * exact.abs().max()


def test_a_hook_sees_the_buckets() -> None:
    """In their order, with parameters and gradients, of which the last is marked; it may compute anything."""
    seen: list[Any] = []

    def hook(state: Any, bucket: dist.GradBucket) -> Any:
        if dist.get_rank() == 0:
            state.append((bucket.index(), [tuple(p.shape) for p in bucket.parameters()], bucket.is_last()))
            assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        done: cd.futures.Future[Any] = cd.futures.Future()
        done.set_result(cd.full_like(bucket.buffer(), 7.0))
        return done

    found = gradients(seen, hook, 1e-5)
    assert [row[0] for row in seen] == list(range(len(seen)))
    assert [row[2] for row in seen] == [False] * (len(seen) - 1) + [True]
    assert sorted(shape for row in seen for shape in row[1]) == sorted(tuple(p.shape) for p in network().parameters())
    assert all((g == 7.0).all() for g in found[0])


def test_one_rank_and_wrong_hooks() -> None:
    """A group of one rank calls the hook too; a second hook, or one that cannot be called, is an error."""

    def program() -> None:
        net = DistributedDataParallel(network())
        with pytest.raises(TypeError, match="Communication hook must be callable"):
            net.register_comm_hook(None, None)
        called: list[int] = []

        def hook(state: Any, bucket: dist.GradBucket) -> Any:
            called.append(bucket.index())
            return hooks.allreduce_hook(state, bucket)

        net.register_comm_hook(None, hook)
        net(numbers(0, 3, 12)).sum().backward()
        assert called == [0]
        with pytest.raises(RuntimeError, match="register_builtin_comm_hook can only be called once"):
            net.register_comm_hook(None, hook)

    threads.run(program, 1)


def test_power_sgd_of_full_rank_is_exact() -> None:
    """With as many columns as the matrix has, P Qᵀ is the average itself, up to rounding."""

    def program() -> list[Any]:
        net = DistributedDataParallel(network())
        # min_compression_rate=0: factors travel although they are no smaller
        state = PowerSGDState(None, 12, 2, min_compression_rate=0)
        net.register_comm_hook(state, powerSGD_hook)
        found = []
        for step in range(4):
            net.zero_grad()
            (net(numbers(100 * step + dist.get_rank(), 5, 12)) ** 2).mean().backward()
            found.append([p.grad for p in net.parameters()])
        assert len(state.factors) == 2
        return found

    def plain() -> list[Any]:
        net, found = network(), []
        for step in range(4):
            net.zero_grad()
            loss: Any = sum((net(numbers(100 * step + rank, 5, 12)) ** 2).mean() for rank in range(SIZE))
            (loss / SIZE).backward()
            found.append([p.grad for p in net.parameters()])
        return found

    for found in threads.run(program, SIZE):
        for one, other in zip(found, plain(), strict=True):
            assert all(cd.allclose(g, h, rtol=1e-4, atol=1e-5) for g, h in zip(one, other, strict=True))


def test_power_sgd_learns() -> None:
    """With one column, errors are fed back, so that training goes on; matrices travel in fewer numbers."""

    def program() -> Any:
        net = DistributedDataParallel(network())
        state = PowerSGDState(None, 1, 2)
        net.register_comm_hook(state, powerSGD_hook)
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        x = numbers(50 + dist.get_rank(), 16, 12)
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = ((net(x) - x[:, :2]) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert state.compresses(cd.empty(12, 10))
        assert not state.compresses(cd.empty(10))
        assert not state.compresses(cd.empty(2, 2))
        return losses[-1] / losses[0], [p.detach() for p in net.parameters()]

    results = threads.run(program, SIZE)
    assert max(ratio for ratio, _ in results) < 0.5
    assert all(cd.equal(p, q) for p, q in zip(results[0][1], results[1][1], strict=True))


def test_power_sgd_needs_a_step_before() -> None:
    """Error feedback and a warm start begin after the first steps."""
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start`"):
        PowerSGDState(None, start_powerSGD_iter=1)


def test_a_failed_collective_reaches_the_future() -> None:
    """Waiting for the future of a work raises its error, as waiting for the work does."""

    def program() -> None:
        tensor = cd.ones(2)
        work = dist.all_reduce(tensor, async_op=True)
        assert work is not None
        future = work.get_future()
        doubled = future.then(lambda f: 2 * f.value()[0]).then(lambda f: f.value() + 1)
        assert doubled.wait().tolist() == [5.0, 5.0]
        assert future.done()
        assert work.result()[0] is tensor
        failing = dist.all_reduce(cd.ones(2 + dist.get_rank()), async_op=True)
        assert failing is not None
        with pytest.raises(dist.DistBackendError, match="buffers of different sizes"):
            failing.get_future().wait()

    threads.run(program, SIZE)
