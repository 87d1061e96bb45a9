"""Angles in degrees."""

from __future__ import annotations

import math

import candelabra as cd
import numpy as np
import pytest


def test_degrees_and_radians() -> None:
    """The functions are inverse to each other; integers are promoted to floats."""
    assert cd.deg2rad(cd.tensor([180, 90])).tolist() == pytest.approx([math.pi, math.pi / 2])
    x = cd.tensor([0.5, -2.0])
    assert x.rad2deg().tolist() == pytest.approx(np.rad2deg([0.5, -2.0]).tolist())
    assert x.deg2rad_().rad2deg_().tolist() == pytest.approx([0.5, -2.0])
