"""Training on an OpenCL device: steps of optimisers, a small network, and memory that stays."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.device import open_device
from candelabra.plugins import registry
from candelabra_opencl.backend import OpenCLBackend

from benchmarks.opencl.leaks import network, watched

OPTIMIZERS = {
    "SGD": lambda ps, **o: optim.SGD(ps, lr=0.1, **o),
    "SGD with decay, uphill": lambda ps, **o: optim.SGD(ps, lr=0.1, weight_decay=0.01, maximize=True, **o),
    "momentum": lambda ps, **o: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.25, **o),
    "Nesterov's": lambda ps, **o: optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True, **o),
    "Adam": lambda ps, **o: optim.Adam(ps, lr=0.1, **o),
    "Adam with decay, uphill": lambda ps, **o: optim.Adam(ps, lr=0.1, weight_decay=0.1, maximize=True, **o),
    "Adam that forgets": lambda ps, **o: optim.Adam(ps, lr=0.1, betas=(0.25, 0.5), **o),
    "AdamW": lambda ps, **o: optim.AdamW(ps, lr=0.1, **o),
    "AMSGrad": lambda ps, **o: optim.AdamW(ps, lr=0.1, amsgrad=True, **o),
}


def walked(make: Any, where: cd.device, d: Any, **options: Any) -> list[Any]:
    """What is left of the gradients 1, 2, 3 … of two parameters, one of them with its dims exchanged."""
    cd.manual_seed(4)
    start = cd.randn(37, 130, dtype=d), cd.randn(5, 3, dtype=d).t()
    parameters = [nn.Parameter(x.to(where)) for x in start]
    optimizer = make(parameters, **options)
    for _ in range(3):
        for p in parameters:
            p.grad = cd.randn(*p.shape[::-1], dtype=d).t().to(where)
        optimizer.step()
    kept = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, cd.Tensor)]
    return [x.tolist() for x in (*parameters, *kept)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fused_steps_have_the_bits_of_the_reference(device: cd.device, name: str) -> None:
    """One kernel does the operations of a step in the order of the operators that it stands for."""
    for d in (cd.float32, cd.float64) if name in ("Nesterov's", "AMSGrad") else (cd.float32,):
        assert walked(OPTIMIZERS[name], device, d) == walked(OPTIMIZERS[name], registry.reference_device(), d)


@pytest.mark.parametrize("name", ["Nesterov's", "AMSGrad"])
def test_the_forms_for_gpus_have_the_same_bits(lanes: cd.device, name: str) -> None:
    """A work-item for each element, not for many."""
    assert walked(OPTIMIZERS[name], lanes, cd.float32) == walked(
        OPTIMIZERS[name], registry.reference_device(), cd.float32
    )


def launched(device: cd.device, monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    """How many steps of a parameter the device's own kernel does."""
    kernels = open_device(device).kernels
    calls: list[int] = []
    count = _Counting(kernels["adam_step_"], calls)
    monkeypatch.setitem(kernels, "adam_step_", count)
    walked(OPTIMIZERS["Adam"], device, cd.float32, **options)
    return len(calls)


class _Counting:
    """A kernel that counts its calls."""

    def __init__(self, kernel: Any, calls: list[int]) -> None:
        self.kernel, self.calls = kernel, calls

    def for_dtype(self, d: Any) -> Any:
        """The kernel of a dtype, counting."""
        chosen = self.kernel.for_dtype(d)

        def counted(*args: Any) -> None:
            self.calls.append(1)
            chosen(*args)

        return counted


def test_a_step_is_one_launch_a_parameter(device: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused kernel serves unless fused=False says otherwise."""
    assert launched(device, monkeypatch) == 6
    assert launched(device, monkeypatch, fused=False) == 0


def test_a_fused_step_counts_as_a_write(device: cd.device) -> None:
    """What was saved before a step is refused after it, as after any write in place."""
    p = nn.Parameter(cd.ones(3, device=device))
    optimizer = optim.Adam([p])
    p.grad = cd.ones(3, device=device)
    product = (p * p).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_fused_step_refuses_a_state_of_another_shape(device: cd.device) -> None:
    """The words are those of the operator's rule."""
    p = nn.Parameter(cd.ones(3, device=device))
    optimizer = optim.SGD([p], momentum=0.9)
    optimizer.state[p] = {"momentum_buffer": cd.ones(2, device=device)}
    p.grad = cd.ones(3, device=device)
    with pytest.raises(RuntimeError, match=r"expected the shape of the parameter, \[3\], of its gradient"):
        optimizer.step()


def test_half_types_are_left_to_operators(device: cd.device) -> None:
    """Each operator of a step rounds, so there is no kernel for all of it; the step is the same within rounding."""
    both = [walked(OPTIMIZERS["SGD"], where, cd.float16) for where in (device, registry.reference_device())]
    for given, expected in zip(*both, strict=True):
        assert cd.allclose(cd.tensor(given), cd.tensor(expected), rtol=4e-3, atol=4e-3)
    instance = open_device(device)
    half = instance.backend.empty(instance.index, (2,), cd.float16)
    with pytest.raises(TypeError, match=r"there is no fused step for candelabra\.float16"):
        instance.kernels["sgd_step_"](half, half, 0.1, 0.0, False)


def test_a_kernel_of_a_step_refuses_other_shapes(device: cd.device) -> None:
    """Nothing is written beyond an array that is smaller than the parameter."""
    instance = open_device(device)
    arrays = [instance.backend.empty(instance.index, (n,), cd.float32) for n in (3, 2)]
    with pytest.raises(RuntimeError, match="sgd: shapes differ"):
        instance.kernels["sgd_step_"](*arrays, 0.1, 0.0, False)


def training(where: cd.device, steps: int) -> Iterator[tuple[float, list[Any]]]:
    """Loss and gradients of each step, from one seed."""
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
            yield loss.item(), [g.to(registry.reference_device()) for g in gradients]
            optimizer.step()


def test_a_network_learns_as_on_the_reference(device: cd.device) -> None:
    """The loss falls by the same numbers within rounding, dropout's masks included; so do the first gradients."""
    given, wanted = (list(training(where, 20)) for where in (device, registry.reference_device()))
    assert wanted[-1][0] < wanted[0][0] * 0.7
    assert [loss for loss, _ in given] == pytest.approx([loss for loss, _ in wanted], rel=1e-4)
    for gradient, reference in zip(given[0][1], wanted[0][1], strict=True):
        assert cd.allclose(gradient, reference, rtol=1e-4, atol=1e-6)


def test_training_keeps_no_memory(device: cd.device) -> None:
    """After many steps the device holds as many bytes as after some, and the program as many objects."""
    early, *_, late = watched(device, 120, looks=3)
    assert late.steps == 120
    assert late.allocated <= early.allocated
    assert late.objects - early.objects < 100


def test_four_threads_train_at_once(device: cd.device) -> None:
    """Networks of their own in four threads, two of each kind, whose kernels are built meanwhile: as one by one."""
    backend = OpenCLBackend("crowded")
    remove = registry.add_backend(backend)
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
    assert given[0] == pytest.approx(learned(0, registry.reference_device()), rel=1e-4)
