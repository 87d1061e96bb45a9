"""The devices of these tests compute, each with its own forms of kernels."""

import candelabra as cd
import pytest


@pytest.mark.parametrize("name", ["device", "lanes"])
def test_tensors_are_made_and_come_back(name: str, request: pytest.FixtureRequest) -> None:
    """A result on a device equals the host's."""
    place = request.getfixturevalue(name)
    x = cd.arange(6, dtype=cd.float32).reshape(2, 3)
    there = x.to(place)
    assert there.device == place
    assert (there + there).cpu().tolist() == (x + x).tolist()
