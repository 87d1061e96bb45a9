"""The kernels of class losses and of their mean."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F
from candelabra_clike.kernels.class_losses import KERNELS, TARGETS
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import ENGINE


@pytest.mark.parametrize("shape", [(150, 7), (TARGETS + 1, 3), (70_000, 5), (3, 7, 150, 160)])
def test_the_mean_is_that_of_all_work_items(shape: tuple[int, ...]) -> None:
    """Ignored targets do not count, whether one work-item or several add the losses, of vectors or of images."""
    draw = np.random.default_rng(1)
    x, target = draw.standard_normal(shape).astype(np.float32), draw.integers(0, shape[1], (shape[0], *shape[2:]))
    target.reshape(-1)[::3] = -100
    kernel = KERNELS["mean_class_loss"].for_dtype(cd.float32)
    mean, count = payload(kernel(strided(x, ENGINE), strided(target, ENGINE), -100))
    losses = -np.take_along_axis(x.astype(float), np.maximum(target, 0)[:, None], 1)[:, 0]
    assert count == (target != -100).sum() < target.size
    np.testing.assert_allclose(mean, losses[target != -100].mean(), rtol=1e-6)
    assert KERNELS["mean_class_loss"].for_dtype(cd.float16) is None


@pytest.mark.parametrize("shape", [(2, 3, 5), (5000, 3), (3, 7, 150, 160)])
def test_losses_are_those_of_their_targets(shape: tuple[int, ...]) -> None:
    """A work-item that begins within a row goes on to the next rows."""
    draw = np.random.default_rng(1)
    x, target = draw.standard_normal(shape).astype(np.float32), draw.integers(0, shape[1], (shape[0], *shape[2:]))
    target.reshape(-1)[1::4] = -100
    losses, weights = KERNELS["class_losses"].for_dtype(cd.float32)(strided(x, ENGINE), strided(target, ENGINE), -100)
    want = np.where(target == -100, 0, -np.take_along_axis(x, np.maximum(target, 0)[:, None], 1)[:, 0])
    np.testing.assert_array_equal(payload(losses), want)
    np.testing.assert_array_equal(payload(weights), target != -100)


def test_targets_of_another_shape_are_refused() -> None:
    """They would be read beyond their end."""
    kernel = KERNELS["mean_class_loss"].for_dtype(cd.float32)
    with pytest.raises(RuntimeError, match=r"mean_class_loss: expected targets of shape \(4,\), got \(3,\)"):
        kernel(strided(np.zeros((4, 2), np.float32), ENGINE), strided(np.zeros(3, int), ENGINE), -100)


def test_a_target_that_is_no_class_is_named() -> None:
    """The error is that of the device's owner, whatever the kernel."""
    with pytest.raises(IndexError, match=r"Target 9 is out of bounds"):
        F.cross_entropy(cd.zeros(4, 3), cd.tensor([0, 9, 1, 2]))
    with pytest.raises(IndexError, match=r"Target 9 is out of bounds"):
        F.nll_loss(
            cd.zeros(9, 3, 40, 40),
            cd.arange(9).clamp(max=2).add(cd.arange(9) // 8 * 7)[:, None, None].expand(9, 40, 40),
        )
