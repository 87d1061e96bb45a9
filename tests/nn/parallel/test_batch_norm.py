"""SyncBatchNorm over several ranks, which are threads."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn
from candelabra.distributed import threads

SIZES = [5, 3]
"""The batch of each rank."""


def numbers(seed: int, *shape: int, dtype: Any = cd.float64) -> Any:
    """Return fixed numbers with a large mean, so that a variance of squares would cancel."""
    return cd.tensor((100 + np.random.default_rng(seed).standard_normal(shape)).tolist(), dtype=dtype)


def layer(kind: Any, **options: Any) -> Any:
    """Return a layer with other weights than 1 and 0."""
    built = kind(3, dtype=cd.float64, **options)
    with cd.no_grad():
        for number, p in enumerate(built.parameters()):
            p.copy_(cd.tensor([0.5, 2.0, -1.0]) + number)
    return built


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("affine", [True, False])
def test_ranks_together_normalize_as_one_process(momentum: float | None, affine: bool) -> None:
    """Values, running statistics, and gradients of the sum of all ranks' losses; batches of different sizes."""
    plain = layer(nn.BatchNorm2d, momentum=momentum, affine=affine)
    inputs = [numbers(rank, size, 3, 2, 2).requires_grad_() for rank, size in enumerate(SIZES)]
    for _ in range(2):
        out = plain(cd.cat(inputs))
    (out**3).sum().backward()

    def program() -> Any:
        rank = dist.get_rank()
        sync = layer(nn.SyncBatchNorm, momentum=momentum, affine=affine)
        x = numbers(rank, SIZES[rank], 3, 2, 2).requires_grad_()
        for _ in range(2):
            own = sync(x)
        (own**3).sum().backward()
        return own.detach(), x.grad, [p.grad for p in sync.parameters()], list(sync.buffers())

    found = threads.run(program, len(SIZES))
    assert cd.allclose(cd.cat([each[0] for each in found]), out, rtol=1e-9)
    for (_, g, _, buffers), x in zip(found, inputs, strict=True):
        assert cd.allclose(g, x.grad, rtol=1e-6, atol=1e-8)
        for buffer, expected in zip(buffers, plain.buffers(), strict=True):
            assert cd.allclose(buffer, expected, rtol=1e-9)
    for first, second, p in zip(found[0][2], found[1][2], plain.parameters(), strict=True):
        assert cd.allclose(first + second, p.grad, rtol=1e-6, atol=1e-8)


def test_evaluation_uses_running_statistics() -> None:
    """Without running statistics, those of the batches of all ranks."""

    def program(tracked: bool) -> Any:
        sync = layer(nn.SyncBatchNorm, track_running_stats=tracked).eval()
        return sync(numbers(dist.get_rank(), 4, 3)).detach()

    x = [numbers(rank, 4, 3) for rank in range(2)]
    for tracked in (True, False):
        plain = layer(nn.BatchNorm1d, track_running_stats=tracked).eval()
        assert cd.allclose(cd.cat(threads.run(program, 2, tracked)), plain(cd.cat(x)), rtol=1e-9)


def test_half_types_compute_in_float32() -> None:
    """The result has the dtype of the input, and the values of float32 rounded once."""

    def program() -> Any:
        x = numbers(dist.get_rank(), 4, 3, dtype=cd.bfloat16)
        return nn.SyncBatchNorm(3)(x), nn.SyncBatchNorm(3)(x.float())

    for half, single in threads.run(program, 2):
        assert half.dtype is cd.bfloat16
        assert cd.equal(half, single.to(cd.bfloat16))
