"""Fused optimizer steps, with kernels that are registered for the reference device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.library import Layer, open_device, record, register_kernel


class Recorder:
    """A kernel that does gradient descent on the reference's arrays, and records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, parameters: Any, gradients: Any, lr: float, *options: Any) -> None:
        self.calls.append(([a.shape for a in parameters], [a.dtype.name for a in gradients], lr, *options))
        for p, g in zip(parameters, gradients, strict=True):
            p -= lr * g


Register = Callable[[str, Callable[..., Any]], None]


@pytest.fixture
def register() -> Iterator[Register]:
    """Return a function that registers a kernel of the reference device until the end of the test."""
    undo: list[Callable[[], None]] = []
    device = open_device().device.type
    yield lambda name, kernel: undo.append(register_kernel(device, name, kernel))
    for each in reversed(undo):
        each()


@pytest.fixture
def kernel(register: Register) -> Recorder:
    """Register a kernel for steps of gradient descent during a test."""
    made = Recorder()
    register("sgd_step_", made)
    return made


def parameters(*shapes: tuple[int, ...], dtype: Any = cd.float32) -> list[Any]:
    """Return parameters of ones with gradients of ones."""
    made = [nn.Parameter(cd.ones(shape, dtype=dtype)) for shape in shapes]
    for p in made:
        p.grad = cd.ones_like(p)
    return made


def test_all_parameters_of_a_dtype_are_one_call(kernel: Recorder) -> None:
    """The kernel takes a sequence for each tensor of the record, then the record's options."""
    moved = parameters((2,), (), (0, 3)) + parameters((4,), dtype=cd.float64)
    optim.SGD(moved, lr=0.5, weight_decay=0.25).step()
    assert kernel.calls == [
        ([(2,), (), (0, 3)], ["float32"] * 3, 0.5, 0.25, False),
        ([(4,)], ["float64"], 0.5, 0.25, False),
    ]
    assert [p.flatten().tolist() for p in moved] == [[0.5] * 2, [0.5], [], [0.5] * 4]
    assert [p._version for p in moved] == [1] * 4


def test_each_group_is_one_call(kernel: Recorder) -> None:
    """The options of a call are those of the group."""
    a, b = parameters((2,), (3,))
    optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.5).step()
    assert [(shapes, lr) for shapes, _, lr, *_ in kernel.calls] == [([(2,)], 0.5), ([(3,)], 1.0)]


@pytest.mark.parametrize(
    "step",
    [
        lambda ps: optim.SGD(ps, lr=0.5, fused=False),
        lambda ps: optim.SGD(ps, lr=cd.tensor(0.5, requires_grad=True), differentiable=True),
        lambda ps: optim.SGD(ps, lr=0.5, momentum=0.9),
    ],
    ids=["fused=False", "differentiable", "no such kernel"],
)
def test_operators_do_the_other_steps(kernel: Recorder, step: Callable[[Any], Any]) -> None:
    """Operators do the step if the kernel is disabled, the step is recorded, or the kernel does not exist."""
    moved = [cd.ones(2), cd.ones(3)]  # no Parameters: a step that is recorded cannot write a leaf with a gradient
    for p in moved:
        p.grad = cd.ones_like(p)
    step(moved).step()
    assert kernel.calls == []
    assert [p.tolist() for p in moved] == [[0.5] * 2, [0.5] * 3]


def test_operators_update_parameters_of_other_kinds(kernel: Recorder) -> None:
    """Operators serve a gradient that is a view with history; the kernel serves the other parameters."""
    a, b, c = parameters((2,), (3,), (4,))
    base = cd.ones(6, requires_grad=True) * 1
    b.grad = base[3:]
    optim.SGD([a, b, c], lr=0.5).step()
    assert [shapes for shapes, *_ in kernel.calls] == [[(2,), (4,)]]
    assert [p.tolist() for p in (a, b, c)] == [[0.5] * 2, [0.5] * 3, [0.5] * 4]


def test_an_error_of_the_kernel_names_the_operator(register: Register) -> None:
    """The error has the arguments of a parameter, and versions do not change."""

    def broken(*_: Any) -> None:
        raise OSError("no more")

    register("sgd_step_", broken)
    moved = parameters((2,), (3,))
    with pytest.raises(OSError, match="no more") as caught:
        optim.SGD(moved, lr=0.5).step()
    (note,) = caught.value.__notes__
    assert note.startswith("raised by the kernel of 'sgd_step' on (float32[2] on ")
    assert [p._version for p in moved] == [0, 0]


def test_a_failed_step_does_not_count(register: Register) -> None:
    """After a failed step, Adam repeats the step of that number."""

    def broken(*_: Any) -> None:
        raise OSError("no more")

    moved = parameters((2,), (3,))
    optimizer = optim.Adam(moved)
    optimizer.step()
    register("adam_step_", broken)
    with pytest.raises(OSError, match="no more"):
        optimizer.step()
    assert [optimizer.state[p]["step"] for p in moved] == [1, 1]


def test_parameters_that_came_later_count_their_own_steps(register: Register) -> None:
    """Adam's parameters with equal step counts are one call; first steps of momentum are another call."""
    calls: list[tuple[int, float]] = []
    register("adam_step_", lambda ps, gs, ms, ss, step, *_: calls.append((len(ps), step)))
    register("momentum_step_", lambda ps, gs, bs, lr, keep, damp, *_: calls.append((len(ps), damp)))
    for make in (optim.Adam, lambda ps: optim.SGD(ps, momentum=0.5, dampening=0.25)):
        moved = parameters((2,), (3,), (4,))
        optimizer = make(moved)
        moved[1].grad = None
        optimizer.step()
        moved[1].grad = cd.ones(3)
        optimizer.step()
    assert calls == [(2, 1), (2, 2), (1, 1), (2, 0), (2, 0.25), (1, 0)]


def test_a_kernel_declines_a_call(register: Register) -> None:
    """A kernel that returns NotImplemented leaves the step to the operators."""
    register("sgd_step_", lambda *_: NotImplemented)
    moved = parameters((2,), (3,))
    optim.SGD(moved, lr=0.5).step()
    assert [p.tolist() for p in moved] == [[0.5] * 2, [0.5] * 3]


def test_no_rows_are_no_call(kernel: Recorder) -> None:
    """A group whose parameters have no gradients has no rows, and the kernel is not called."""
    record("sgd_step").over_rows([], 0.5, 0.0, False)
    assert kernel.calls == []


def test_a_layer_sees_the_operators_of_each_row(kernel: Recorder) -> None:
    """Inside a functionality layer the body's operators are dispatched, so that the layer can serve them."""
    seen: list[str] = []

    def watch(op: Any, following: Callable[..., Any], *args: Any) -> Any:
        seen.append(op.name)
        return following(*args)

    layer = Layer("spy", watch)
    rows = [(cd.ones(2), cd.ones(2)), (cd.ones(3), cd.ones(3))]
    try:
        with layer:
            record("sgd_step").over_rows(rows, 0.5, 0.0, False)
    finally:
        layer.remove()
    assert kernel.calls == []
    assert len(seen) >= 2
    assert seen[: len(seen) // 2] * 2 == seen
    assert [p.tolist() for p, _ in rows] == [[0.5] * 2, [0.5] * 3]


def test_a_row_of_two_shapes_is_an_error_that_names_them(kernel: Recorder) -> None:
    """If the kernel fails, the record's rule describes the first row whose shapes differ; no version changes."""
    rows = [(cd.ones(2), cd.ones(2)), (cd.ones(3), cd.ones(4))]
    with pytest.raises(RuntimeError, match=r"expected the shape of the parameter, \[3\], .* got \[4\]"):
        record("sgd_step").over_rows(rows, 0.5, 0.0, False)
    assert [p._version for p, _ in rows] == [0, 0]
