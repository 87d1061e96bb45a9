"""Fused steps of optimisers on an OpenCL device, for many parameters at once: equal to the reference to the bit."""

from collections.abc import Iterator, Sequence
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.library import open_device, plugins
from candelabra_clike.dialects import OPENCL
from candelabra_clike.kernels import optimizers

pytestmark = pytest.mark.rounding

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


def optimized(make: Any, where: cd.device, d: Any, **options: Any) -> list[Any]:
    """Return the state after steps with the gradients 1, 2, 3 … of two parameters, one with permuted dims."""
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
    """One kernel does the operations of a step in the order of the replaced operators."""
    for d in (cd.float32, cd.float64) if name in ("Nesterov's", "AMSGrad") else (cd.float32,):
        assert optimized(OPTIMIZERS[name], device, d) == optimized(OPTIMIZERS[name], plugins.reference_device(), d)


@pytest.mark.parametrize("name", ["Nesterov's", "AMSGrad"])
def test_the_forms_for_gpus_have_the_same_bits(lanes: cd.device, name: str) -> None:
    """There is one work-item per element instead of one for many."""
    assert optimized(OPTIMIZERS[name], lanes, cd.float32) == optimized(
        OPTIMIZERS[name], plugins.reference_device(), cd.float32
    )


# -- launches ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Record the number of parameters of each launched step kernel of OpenCL."""
    widths: list[int] = []
    compiled = optimizers.compiled

    def recorded(engine: Any, step: Any, d: Any, width: int) -> Any:
        launch = compiled(engine, step, d, width)

        def counted(*arguments: Any) -> None:
            if engine.dialect is OPENCL:
                widths.append(width)
            launch(*arguments)

        return counted

    monkeypatch.setattr(optimizers, "compiled", recorded)
    optimizers.groups.cache_clear()
    yield widths
    optimizers.groups.cache_clear()


def after_two_steps(make: Any, start: Sequence[Any], where: cd.device, change: Any = None) -> list[list[float]]:
    """Do two steps with twice the parameters as gradients, and return the final state in order."""
    parameters = [nn.Parameter(x.to(where)) for x in start]
    optimizer = make(parameters)
    if change is not None:
        change(parameters)
    for _ in range(2):
        for p in parameters:
            p.grad = p.detach() * 2
        optimizer.step()
    kept = [v for p in parameters for v in optimizer.state.get(p, {}).values() if isinstance(v, cd.Tensor)]
    return [x.flatten().tolist() for x in (*parameters, *kept)]


def many_parameters(count: int) -> list[Any]:
    """Return parameters of many shapes: 0-d, empty, and one larger than a work-item's chunk."""
    cd.manual_seed(7)
    shapes = [(3, 5), (), (0, 2), (4097,), (64,), (1, 2, 3)]
    return [cd.randn(*shapes[i % 6] if i < 12 else (i,)) for i in range(count)]


COUNTS = {"SGD": (85, [41, 41, 4]), "momentum": (31, [30, 2]), "Adam": (51, [23, 23, 8]), "AMSGrad": (18, [19])}
"""Numbers of parameters, and the launches of their step."""


@pytest.mark.parametrize("name", COUNTS)
def test_many_parameters_share_launches(device: cd.device, launches: list[int], name: str) -> None:
    """The results equal the reference's to the bit, whatever the shapes are."""
    count, widths = COUNTS[name]
    start = many_parameters(count)
    given = after_two_steps(OPTIMIZERS[name], start, device)
    assert launches == widths * 2
    assert given == after_two_steps(OPTIMIZERS[name], start, plugins.reference_device())
    assert launches == widths * 2  # Launches of the reference do not count.


def test_a_work_item_for_each_element_finds_its_parameter(lanes: cd.device, launches: list[int]) -> None:
    """The form for GPUs supports more parameters than one launch holds."""
    start = many_parameters(25)
    assert after_two_steps(OPTIMIZERS["Adam"], start, lanes) == after_two_steps(
        OPTIMIZERS["Adam"], start, plugins.reference_device()
    )
    assert launches == [23, 2] * 2


def test_large_parameters_go_alone_where_a_work_item_is_an_element(
    lanes: cd.device, device: cd.device, launches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of its parameter would cost each element more than a launch costs the step; a loop searches once."""
    monkeypatch.setattr(optimizers, "SHARED_LAUNCH_LIMIT", 100)
    start = [cd.ones(n) for n in (100, 101, 7)]
    after_two_steps(OPTIMIZERS["SGD"], start, lanes)
    assert launches == [2, 1] * 2
    launches.clear()
    after_two_steps(OPTIMIZERS["SGD"], start, device)
    assert launches == [4] * 2


def test_parts_of_buffers_and_other_layouts_go_alone(device: cd.device, launches: list[int]) -> None:
    """Parameters with an offset or permuted dims, empty ones, and contiguous ones are combined."""

    def change(parameters: list[Any]) -> None:
        where = parameters[0].device
        parameters[1].data = cd.arange(10.0, device=where)[4:]
        parameters[2].data = cd.arange(6.0, device=where).reshape(2, 3).t()
        parameters[5].data = cd.arange(3.0, device=where)[3:]

    start = [cd.ones(4), cd.zeros(6), cd.zeros(3, 2), cd.ones(2, 2), cd.ones(()), cd.ones(0)]
    given = after_two_steps(OPTIMIZERS["Adam"], start, device, change)
    assert launches == [4, 1, 1] * 2
    assert given == after_two_steps(OPTIMIZERS["Adam"], start, plugins.reference_device(), change)


def test_parameters_over_one_memory_are_done_in_their_order(device: cd.device, launches: list[int]) -> None:
    """In a shared launch two work-items could write the same element; the same holds if a gradient is a parameter."""

    def tie(parameters: list[Any]) -> None:
        parameters[2].data = parameters[0].data

    start = [cd.full((5,), 3.0), cd.ones(2), cd.zeros(5)]
    given = after_two_steps(OPTIMIZERS["momentum"], start, device, tie)
    assert launches == [1, 1, 1] * 2
    assert given == after_two_steps(OPTIMIZERS["momentum"], start, plugins.reference_device(), tie)
    launches.clear()
    a, b = (nn.Parameter(cd.ones(2, device=device)) for _ in range(2))
    a.grad, b.grad = cd.ones(2, device=device), a.detach()
    optim.SGD([a, b], lr=0.5).step()
    assert [a.tolist(), b.tolist(), launches] == [[0.5, 0.5], [0.75, 0.75], [1, 1]]


def test_one_gradient_may_serve_many_parameters(device: cd.device, launches: list[int]) -> None:
    """Memory that is only read may be shared."""
    parameters = [nn.Parameter(cd.full((3,), float(i), device=device)) for i in range(3)]
    gradient = cd.ones(3, device=device)
    for p in parameters:
        p.grad = gradient
    optim.SGD(parameters, lr=0.5).step()
    assert launches == [4]
    assert [p[2].item() for p in parameters] == [-0.5, 0.5, 1.5]


def test_devices_and_dtypes_of_a_group_are_launches_of_their_own(device: cd.device, launches: list[int]) -> None:
    """float32, float64 and float16 on one device and float32 on another one are in one group."""
    reference = plugins.reference_device()
    kinds = [(device, cd.float32), (device, cd.float64), (device, cd.float16), (reference, cd.float32)]
    parameters = [nn.Parameter(cd.ones(n, device=where, dtype=d)) for n in (2, 3) for where, d in kinds]
    optimizer = optim.Adam(parameters, lr=0.25)
    for p in parameters:
        p.grad = cd.ones_like(p)
    optimizer.step()
    assert launches == [2, 2]
    assert [p.tolist() for p in parameters] == [pytest.approx([0.75] * n, rel=1e-3) for n in (2,) * 4 + (3,) * 4]


def test_fused_false_launches_no_step(device: cd.device, launches: list[int]) -> None:
    """The individual operators of the step run instead."""
    optimized(OPTIMIZERS["Adam"], device, cd.float32, fused=False)
    assert launches == []


# -- other effects ----------------------------------------------------------------------------------------------------
def test_a_fused_step_counts_as_a_write(device: cd.device) -> None:
    """A tensor saved before a step is refused after it, as after any in-place write."""
    p = nn.Parameter(cd.ones(3, device=device))
    optimizer = optim.Adam([p])
    p.grad = cd.ones(3, device=device)
    product = (p * p).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_fused_step_refuses_a_state_of_another_shape(device: cd.device, launches: list[int]) -> None:
    """The error is that of the operator's rule for the wrong parameter; no parameter changes."""
    parameters = [nn.Parameter(cd.ones(n, device=device)) for n in (2, 3, 4)]
    optimizer = optim.SGD(parameters, momentum=0.9)
    optimizer.state[parameters[1]] = {"momentum_buffer": cd.ones(2, device=device)}
    for p in parameters:
        p.grad = cd.ones_like(p)
    with pytest.raises(RuntimeError, match=r"expected the shape of the parameter, \[3\], of its gradient.*, got \[2\]"):
        optimizer.step()
    assert launches == []
    assert [p.tolist() for p in parameters] == [[1.0] * 2, [1.0] * 3, [1.0] * 4]
    assert optimizer.state[parameters[0]]["momentum_buffer"].tolist() == [0, 0]


def test_half_types_are_left_to_operators(device: cd.device) -> None:
    """Each operator of a step rounds, so there is no fused kernel; the step is equal within rounding."""
    both = [optimized(OPTIMIZERS["SGD"], where, cd.float16) for where in (device, plugins.reference_device())]
    for given, expected in zip(*both, strict=True):
        assert cd.allclose(cd.tensor(given), cd.tensor(expected), rtol=4e-3, atol=4e-3)
    instance = open_device(device)
    half = instance.backend.empty(instance.index, (2,), cd.float16)
    with pytest.raises(TypeError, match=r"fused optimizer steps support float32 and float64, got candelabra\.float16"):
        instance.kernels["sgd_step_"]([half], [half], 0.1, 0.0, False)


def test_a_kernel_of_a_step_refuses_other_shapes(device: cd.device) -> None:
    """No element beyond a smaller array is written."""
    instance = open_device(device)
    arrays = [instance.backend.empty(instance.index, (n,), cd.float32) for n in (3, 2)]
    with pytest.raises(RuntimeError, match="sgd: expected arrays of one shape per parameter, got"):
        instance.kernels["sgd_step_"](*[[a] for a in arrays], 0.1, 0.0, False)
