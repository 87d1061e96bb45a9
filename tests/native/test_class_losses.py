"""The kernel of the mean cross entropy."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F
from candelabra_clike.kernels.class_losses import KERNELS, MOST_TARGETS
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import ENGINE


def test_one_work_item_adds_few_losses() -> None:
    """Ignored targets do not count; more targets than the limit are left to the composite."""
    draw = np.random.default_rng(1)
    x, target = draw.standard_normal((150, 7)).astype(np.float32), draw.integers(0, 7, 150)
    target[::3] = -100
    kernel = KERNELS["mean_class_loss"].for_dtype(cd.float32)
    mean, count = payload(kernel(strided(x, ENGINE), strided(target, ENGINE), -100))
    want = [-x[i, t].astype(float) for i, t in enumerate(target) if t != -100]
    assert count == len(want) == 100
    assert mean == np.float32(np.mean(want))
    many = np.zeros((MOST_TARGETS + 1, 1), np.float32)
    assert kernel(strided(many, ENGINE), strided(many[:, 0].astype(int), ENGINE), -100) is NotImplemented
    assert KERNELS["mean_class_loss"].for_dtype(cd.float16) is None


def test_targets_of_another_shape_are_refused() -> None:
    """They would be read beyond their end."""
    kernel = KERNELS["mean_class_loss"].for_dtype(cd.float32)
    with pytest.raises(RuntimeError, match=r"mean_class_loss: expected targets of shape \(4,\), got \(3,\)"):
        kernel(strided(np.zeros((4, 2), np.float32), ENGINE), strided(np.zeros(3, int), ENGINE), -100)


def test_a_target_that_is_no_class_is_named() -> None:
    """The error is that of the device's owner, whatever the kernel."""
    with pytest.raises(IndexError, match=r"Target 9 is out of bounds"):
        F.cross_entropy(cd.zeros(4, 3), cd.tensor([0, 9, 1, 2]))
