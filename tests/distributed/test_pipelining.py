"""Pipelines: the losses, outputs and gradients of one process. Ranks are threads."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn
from candelabra.distributed import threads
from candelabra.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from candelabra.distributed.pipelining._link import StageLink

SIZE = 3


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


class First(nn.Module):
    """Returns a tensor, and integers that need no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.layer(x), cd.arange(x.shape[0])


class Second(nn.Module):
    """Uses both outputs of the first, and an argument of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x: Any, rows: Any, scale: Any = None) -> Any:
        out = self.layer(x).tanh() + (rows * 0).unsqueeze(1)
        return out if scale is None else out * scale


def stages() -> list[Any]:
    """Return the modules with fixed weights."""
    found = [First().double(), Second().double(), nn.Linear(5, 2).double()]
    with cd.no_grad():
        for number, p in enumerate(p for stage in found for p in stage.parameters()):
            p.copy_(numbers(number, *p.shape))
    return found


def loss_fn(output: Any, target: Any) -> Any:
    """Return the mean square."""
    return ((output - target) ** 2).mean()


BATCH, TARGET, SCALE = numbers(50, 8, 4), numbers(51, 8, 2), numbers(52, 8, 1)


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.thorough)])
def test_training_is_that_of_one_process(kind: Any, count: int) -> None:
    """Gradients of the mean of the microbatches' losses, which are those of the batch."""
    plain = stages()
    output = plain[2](plain[1](*plain[0](BATCH), SCALE))
    loss_fn(output, TARGET).backward()

    def program() -> Any:
        rank = dist.get_rank()
        module = stages()[rank]
        schedule = kind(PipelineStage(module, rank, SIZE, "cpu"), count, loss_fn)
        losses: list[Any] = []
        arguments = [((BATCH,), {}), ((), {"scale": SCALE}), ((), {"target": TARGET, "losses": losses})][rank]
        out = schedule.step(*arguments[0], **arguments[1])
        assert (out is None) == (rank < 2)
        evaluated = schedule.eval(*arguments[0], **arguments[1])
        with cd.no_grad():
            schedule.step(*arguments[0], **arguments[1])
        return [p.grad for p in module.parameters()], out, evaluated, losses

    results = threads.run(program, SIZE)
    for (gradients, _, _, _), module in zip(results, plain, strict=True):
        assert all(cd.allclose(g, p.grad) for g, p in zip(gradients, module.parameters(), strict=True))
    _, out, evaluated, losses = results[2]
    assert cd.allclose(out, output)
    assert cd.allclose(evaluated, output)
    assert len(losses) == count
    assert cd.allclose(sum(losses) / count, loss_fn(output, TARGET))


def test_sums_of_gradients_and_no_outputs() -> None:
    """Without scaling, gradients are those of the sum of the losses."""

    def program() -> Any:
        rank = dist.get_rank()
        module = nn.Linear(3, 3).double()
        with cd.no_grad():
            module.weight.copy_(numbers(rank, 3, 3))
            module.bias.zero_()
        schedule = Schedule1F1B(PipelineStage(module, rank, 2, "cpu"), 2, loss_fn, scale_grads=False)
        x = numbers(9, 4, 3)
        assert schedule.step(*([x] if rank == 0 else []), target=x if rank else None, return_outputs=False) is None
        return module.weight.grad

    first, second = numbers(0, 3, 3).requires_grad_(), numbers(1, 3, 3).requires_grad_()
    x = numbers(9, 4, 3)
    (2 * loss_fn(x @ first.T @ second.T, x)).backward()
    for gradient, weight in zip(threads.run(program, 2), (first, second), strict=True):
        assert cd.allclose(gradient, weight.grad)


def test_one_forward_one_backward_keeps_few_microbatches() -> None:
    """At most as many microbatches are under way as stages follow, this one among them."""

    def program() -> int:
        rank = dist.get_rank()
        stage = PipelineStage(nn.Linear(2, 2), rank, SIZE, "cpu")
        most = 0
        under_way = 0
        for kind, _ in Schedule1F1B(stage, 8).order(rank, SIZE):
            under_way += 1 if kind == "forward" else -1
            most = max(most, under_way)
        assert under_way == 0
        return most

    assert threads.run(program, SIZE) == [3, 2, 1]


def test_wrong_pipelines() -> None:
    """The errors name the numbers, the argument, or the batch."""

    def program() -> None:
        with pytest.raises(
            ValueError, match="stage 1 of 2 must be on rank 1 of a group of 2 ranks, but this is rank 0"
        ):
            PipelineStage(nn.Linear(1, 1), 1, 2, "cpu")
        stage = PipelineStage(nn.Linear(1, 1), 0, 1, "cpu")
        with pytest.raises(ValueError, match="ScheduleGPipe: n_microbatches must be at least 1, got 0"):
            ScheduleGPipe(stage, 0)
        with pytest.raises(NotImplementedError, match="args_chunk_spec must be None: batches are divided along dim 0"):
            ScheduleGPipe(stage, 1, args_chunk_spec=())
        schedule = ScheduleGPipe(stage, 4, loss_fn)
        with pytest.raises(ValueError, match="a batch of 3 rows cannot be divided into 4 microbatches"):
            schedule.step(cd.ones(3, 1), target=cd.ones(3, 1))
        with pytest.raises(ValueError, match="the last stage needs target=, for the loss function"):
            schedule.step(cd.ones(4, 1))
        with pytest.raises(ValueError, match="a stage cannot send 40 tensors"):
            StageLink(0, None, None).send([cd.ones(2)] * 40)

    threads.run(program, 1)

    def fewer() -> None:
        stage = PipelineStage(nn.Linear(1, 1), dist.get_rank(), 2, "cpu")
        with pytest.raises(ValueError, match=r"Number of microbatches \(1\) must be greater than or equal to the numb"):
            Schedule1F1B(stage, 1)

    threads.run(fewer, 2)
