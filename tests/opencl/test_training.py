"""Training on an OpenCL device: a small network, constant memory, and concurrent threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.library import plugins
from candelabra_opencl.backend import OpenCLBackend

from benchmarks.opencl.leaks import network, watched

pytestmark = pytest.mark.rounding


def training(where: cd.device, steps: int) -> Iterator[tuple[float, list[Any]]]:
    """Return loss and gradients of each step, from one seed."""
    with cd.device(where):
        cd.manual_seed(11)
        model = network()
        images, labels = cd.randn(16, 1, 8, 8), cd.randint(0, 10, (16,))
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            yield loss.item(), [g.to(plugins.reference_device()) for g in gradients]
            optimizer.step()


def test_a_network_learns_as_on_the_reference(device: cd.device) -> None:
    """The losses agree within rounding, including dropout's masks, and so do the first gradients."""
    given, wanted = (list(training(where, 20)) for where in (device, plugins.reference_device()))
    assert wanted[-1][0] < wanted[0][0] * 0.7
    assert [loss for loss, _ in given] == pytest.approx([loss for loss, _ in wanted], rel=1e-4)
    for gradient, reference in zip(given[0][1], wanted[0][1], strict=True):
        assert cd.allclose(gradient, reference, rtol=1e-4, atol=1e-6)


def test_training_keeps_no_memory(device: cd.device) -> None:
    """After many steps the device holds as many bytes as after a few, and the program as many objects."""
    early, *_, late = watched(device, 120, looks=3)
    assert late.steps == 120
    assert late.allocated <= early.allocated
    assert late.objects - early.objects < 100


def test_four_threads_train_at_once(device: cd.device) -> None:
    """Separate networks in four threads, two of each kind, learn as in one thread while kernels are built."""
    backend = OpenCLBackend("crowded")
    remove = plugins.add_backend(backend)
    crowded = cd.device(backend.name, 0)
    x, y = cd.randn(6, 2, 9, 9, generator=cd.Generator().manual_seed(3)), cd.arange(6) % 4
    start = threading.Barrier(4)

    def learned(own: int, where: cd.device) -> list[float]:
        width, losses = (3, 5)[own % 2], []
        weight = (cd.arange(width * 18).remainder(7) - 3).reshape(width, 2, 3, 3) / 10
        parameters = [nn.Parameter(weight.to(where)), nn.Parameter((cd.ones(4, width * 9) / (own + 1)).to(where))]
        optimizer = (optim.SGD, optim.AdamW)[own % 2](parameters, lr=0.05)
        for _ in range(6):
            optimizer.zero_grad()
            hidden = nn.functional.max_pool2d(nn.functional.conv2d(x.to(where), parameters[0]).tanh(), 3, 2)
            loss = nn.functional.cross_entropy(hidden.flatten(1) @ parameters[1].t(), y.to(where))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def together(own: int) -> list[float]:
        start.wait()
        return learned(own, crowded)

    try:
        with ThreadPoolExecutor(4) as threads:
            given = list(threads.map(together, range(4)))
    finally:
        remove()
    assert given == [learned(own, device) for own in range(4)]
    assert given[0] == pytest.approx(learned(0, plugins.reference_device()), rel=1e-4)
