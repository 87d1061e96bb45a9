"""The peak memory of compiled training steps on an OpenCL device."""

from __future__ import annotations

import candelabra as cd
import pytest

from benchmarks.memory import LIMIT, compared, setup_of


@pytest.mark.parametrize("name", ["MLP", "CNN", "GPT"])
def test_a_compiled_training_step_needs_no_more_memory_than_an_eager_one(device: cd.device, name: str) -> None:
    """Neither the calls that are traced nor later ones have a larger peak."""
    found = compared(setup_of(name), device, 4)
    assert max(found.ratios) <= LIMIT, found
