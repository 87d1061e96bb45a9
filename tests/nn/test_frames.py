"""The Python functions that a call of a layer's function enters in the core and in nn.

The bounds are the numbers at the time of writing: a call should not become longer unless there is a reason.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.nn import functional as F

from tests.frames import library_frames


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
