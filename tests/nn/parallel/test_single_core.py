"""DistributedDataParallel in processes of one core. Ranks are threads."""

from __future__ import annotations

import os
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra import nn
from candelabra.distributed import threads
from candelabra.nn.parallel import DistributedDataParallel


@pytest.mark.parametrize("cores", [1, 2])
def test_buckets_travel_after_the_backward_pass_of_a_single_core(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more cores, the last layer's gradients are sent before the first layer's are ready. The averages agree."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)

    def program() -> Any:
        net = nn.Sequential(nn.Linear(3, 600), nn.Linear(600, 600))
        for p in net.parameters():
            nn.init.constant_(p, 0.01)
        ready: list[bool] = []
        model = DistributedDataParallel(net, bucket_cap_mb=1)
        buckets = model.reducer.buckets
        net[0].weight.register_hook(lambda _: ready.append(any(bucket.average is not None for bucket in buckets)))
        model(cd.full((2, 3), 1.0 + dist.get_rank())).sum().backward()
        return ready, net[0].weight.grad[0, 0].item()

    first, second = threads.run(program, 2)
    assert first == second
    assert first[0] == [cores > 1]
    assert first[1] == pytest.approx(2 * 1.5 * 6.0, rel=1e-5)
