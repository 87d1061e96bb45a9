"""The Python functions that the core and nn enter in frequent calls, from a convolution to a training step.

The bounds are the numbers at the time of writing. A kernel that replaces a composite lowers them. Some kernels ask the
core for the number of threads, which is two functions.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.nn import functional as F

from tests.frames import library_frames

pytestmark = pytest.mark.usefixtures("owner_alone")


def test_a_convolution_checks_its_arguments_once() -> None:
    """Sizes are converted once each, and shapes are left to the kernel."""
    x, w, b, back = cd.ones(2, 3, 6, 6), cd.ones(4, 3, 3, 3), cd.ones(4), cd.ones(3, 4, 3, 3)
    assert library_frames(lambda: F.conv2d(x, w, b, (1, 1), (1, 1))) <= 12
    assert library_frames(lambda: F.conv2d(x, w, b, 2, 1)) <= 12
    assert library_frames(lambda: F.conv_transpose2d(x, back, None)) <= 14


@pytest.mark.parametrize(("pool", "most"), [(F.max_pool2d, 13), (F.avg_pool2d, 17)])
def test_pooling_checks_its_arguments_once(pool: Any, most: int) -> None:
    """Sizes are converted once each, and the number of windows is computed once per dim."""
    x = cd.ones(2, 3, 6, 6)
    assert library_frames(lambda: pool(x, 2)) <= most


def test_normalization_compares_shapes_and_dtypes_once() -> None:
    """Batch norm in training also updates its running statistics."""
    x, images, norm = cd.ones(2, 3), cd.rand(2, 3, 4, 4), nn.BatchNorm2d(3)
    assert library_frames(lambda: F.layer_norm(x, (3,))) <= 9
    assert library_frames(lambda: norm(images)) <= 64


def test_a_backward_pass_through_a_linear_layer_is_short() -> None:
    """One node computes the gradients of input, weight and bias, also for a batch of sequences."""
    w, b = cd.ones(5, 3, requires_grad=True), cd.ones(5, requires_grad=True)
    x, sequences = cd.ones(2, 3), cd.ones(2, 4, 3)
    g, gs = cd.ones(2, 5), cd.ones(2, 4, 5)
    assert library_frames(lambda: F.linear(x, w, b).backward(g)) <= 54
    assert library_frames(lambda: F.linear(sequences, w, b).backward(gs)) <= 67


def test_a_parameter_is_an_operand_like_any_tensor() -> None:
    """The entry reads the keys of a subclass of Tensor itself."""
    x, p = cd.ones(2, 3), nn.Parameter(cd.ones(2, 3))
    leaf = cd.ones(2, 3, requires_grad=True)
    for call in (cd.add, lambda a, b: a + b, lambda a, b: b * a):
        assert library_frames(lambda call=call: call(x, p)) == library_frames(lambda call=call: call(x, leaf))


def test_the_gradient_of_a_sum_is_short() -> None:
    """The first gradient of a pass is made by canonical forms, and the sum's is a view of it."""
    x = cd.ones(3, 3, requires_grad=True)
    assert library_frames(lambda: x.sum().backward()) <= 36
    assert library_frames(lambda: x.relu().sum().backward()) <= 39


def test_a_training_step_is_short() -> None:
    """The step of two linear layers with cross entropy: 463 functions before this test was written."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    optimizer, loss = optim.SGD(model.parameters(), lr=0.1), nn.CrossEntropyLoss()
    x, y = cd.ones(2, 3), cd.tensor([0, 2])

    def step() -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    assert library_frames(step) <= 301
    assert library_frames(optimizer.zero_grad) <= 4
