"""The devices of these tests compute, each in its own forms."""

import candelabra as cd
import pytest


@pytest.mark.parametrize("name", ["device", "lanes"])
def test_tensors_are_made_and_come_back(name: str, request: pytest.FixtureRequest) -> None:
    """What is computed on a device is what the host computes."""
    place = request.getfixturevalue(name)
    x = cd.arange(6, dtype=cd.float32).reshape(2, 3)
    there = x.to(place)
    assert there.device == place
    assert (there + there).cpu().tolist() == (x + x).tolist()
