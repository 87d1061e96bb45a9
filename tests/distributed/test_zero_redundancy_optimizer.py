"""ZeroRedundancyOptimizer: the steps of the optimizer that it divides. Ranks are threads."""

from __future__ import annotations

import copy
import io
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.optim import ZeroRedundancyOptimizer

SIZE = 3


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32").tolist())


def network() -> Any:
    """Return a network with fixed weights."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape))
    return net


def groups(net: Any) -> list[dict[str, Any]]:
    """Return two groups of parameters with options of their own."""
    return [{"params": list(net[0].parameters()), "lr": 0.01}, {"params": list(net[2:].parameters())}]


def train(net: Any, optimizer: Any, first: int, last: int) -> None:
    """Make steps with a learning rate that a scheduler changes."""
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(first, last):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(numbers(100 + step, 6, 4)), numbers(200 + step, 6, 2)).backward()
        optimizer.step()
        scheduler.step()


OPTIMIZERS = [
    (optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    (optim.AdamW, {"lr": 0.02}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS, ids=lambda value: getattr(value, "__name__", ""))
def test_steps_and_states_are_those_of_the_optimizer(kind: Any, options: dict[str, Any]) -> None:
    """Parameters equal to the last bit on every rank; the state, in files too, is that of one process."""
    plain = network()
    optimizer = kind(groups(plain), **options)
    train(plain, optimizer, 0, 5)
    state = copy.deepcopy(optimizer.state_dict())
    middle = [p.detach().clone() for p in plain.parameters()]
    train(plain, optimizer, 5, 8)

    def program() -> Any:
        net = network()
        divided = ZeroRedundancyOptimizer(groups(net), kind, **options)
        train(net, divided, 0, 5)
        assert all(cd.equal(p, q) for p, q in zip(net.parameters(), middle, strict=True))
        kept = sum(p.numel() for p in divided.state)
        divided.consolidate_state_dict(to=1)
        if dist.get_rank() != 1:
            text = rf"has not been consolidated on this rank.*consolidate_state_dict\(to={dist.get_rank()}\)"
            with pytest.raises(RuntimeError, match=text):
                divided.state_dict()
        file = io.BytesIO()
        found = [divided.state_dict() if dist.get_rank() == 1 else None]
        dist.broadcast_object_list(found, src=1)
        cd.save(found[0], file)
        file.seek(0)
        other = ZeroRedundancyOptimizer(groups(net), kind, **options)
        other.load_state_dict(cd.load(file))
        train(net, other, 5, 8)
        return found[0], [p.detach() for p in net.parameters()], kept

    results = threads.run(program, SIZE)
    total = sum(p.numel() for p in plain.parameters())
    assert sum(kept for _, _, kept in results) == total
    assert max(kept for _, _, kept in results) < total / 2
    for found, parameters, _ in results:
        assert all(cd.equal(p, q) for p, q in zip(parameters, plain.parameters(), strict=True))
        assert found["param_groups"] == state["param_groups"]
        assert list(found["state"]) == list(state["state"])
        for number, entry in state["state"].items():
            for name, value in entry.items():
                assert cd.equal(cd.as_tensor(found["state"][number][name]), cd.as_tensor(value))


def test_a_group_may_be_added() -> None:
    """Its parameters get owners, and its options are those of the optimizer."""

    def program() -> Any:
        net = network()
        divided = ZeroRedundancyOptimizer(net[0].parameters(), optim.SGD, lr=0.5)
        divided.add_param_group({"params": list(net[2].parameters()), "lr": 0.25})
        assert [group["lr"] for group in divided.param_groups] == [0.5, 0.25]
        assert divided.param_groups[1]["momentum"] == 0
        net(numbers(0, 3, 4)).sum().backward()
        before = [p.detach().clone() for p in net.parameters()]
        loss = divided.step(lambda: cd.tensor(3.0))
        assert loss.item() == 3.0
        for rate, p, old in zip([0.5, 0.5, 0.25, 0.25, 0, 0], net.parameters(), before, strict=True):
            assert cd.allclose(p, old - rate * p.grad)
        return [p.detach() for p in net.parameters()]

    first, *others = threads.run(program, SIZE)
    for other in others:
        assert all(cd.equal(p, q) for p, q in zip(first, other, strict=True))


def test_unsupported_options() -> None:
    """The error names the argument; without a process group there is no optimizer."""
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        ZeroRedundancyOptimizer(network().parameters(), optim.SGD, lr=0.1)
    with pytest.raises(NotImplementedError, match="ZeroRedundancyOptimizer: overlap_with_ddp is not supported yet"):
        ZeroRedundancyOptimizer(network().parameters(), optim.SGD, overlap_with_ddp=True, lr=0.1)
