"""Samples for the derivatives of products, distances and the cross product."""

from __future__ import annotations

from typing import Any

import numpy as np

FACTORS = {"beta": 0.5, "alpha": 2.0}
BY_KEYWORD = {
    "addmm": lambda t: ((t(2, 4), t(2, 3), t(3, 4)), FACTORS),
    "addmv": lambda t: ((t(1), t(2, 3), t(3)), FACTORS),
    "addr": lambda t: ((t(3), t(2), t(3)), FACTORS),
    "baddbmm": lambda t: ((t(4), t(2, 2, 3), t(2, 3, 4)), FACTORS),
    "addbmm": lambda t: ((t(2, 4), t(2, 2, 3), t(2, 3, 4)), FACTORS),
}


def points(t: Any, p: float) -> tuple[Any, ...]:
    """Two batches of points, one of which broadcasts."""
    return t(2, 3, 2), t(1, 2, 2), p


SAMPLES = {
    "distances": lambda t: points(t, 2.5),
    "euclidean_distances": lambda t: points(t, 2.0)[:2],
    "cross_product": lambda t: (t(1, 3), t(2, 3), 1),
}
STACK = np.arange(1.0, 33.0).reshape(2, 4, 4)
KERNEL_ARGUMENTS = {
    "vdot": {"input": np.arange(1.0, 5.0), "other": np.arange(5.0, 9.0)},
    "addmv": {"input": np.arange(4.0), "vec": np.arange(1.0, 5.0)},
    "addbmm": {"batch1": STACK, "batch2": STACK},
    "baddbmm": {"batch1": STACK, "batch2": STACK},
    "cross_product": {"input": np.arange(12.0).reshape(3, 4), "other": np.ones((3, 4)), "dim": 0},
}
