"""Weights of convolutions that compiled functions pack before their graphs, on OpenCL devices."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.dtypes import dtype

from tests import packed_programs as programs

pytestmark = pytest.mark.rounding


@pytest.fixture(params=["device", "lanes"])
def target(request: pytest.FixtureRequest) -> cd.device:
    """Return a processor, or a device whose work-items are lanes: their filters are contiguous, not in panels."""
    found: cd.device = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("name", ["2d", "groups", "transposed, strides", "transposed, one position"])
def test_convolutions(name: str, target: cd.device) -> None:
    """Convolutions have the bits of eager calls, whatever has written the weight."""
    programs.check(name, cd.float32, target)


@pytest.mark.parametrize("d", [cd.float64, cd.float16], ids=str)
def test_dtypes(d: dtype, target: cd.device) -> None:
    """Filters of half types are packed as float32, in which they are multiplied."""
    programs.check("2d", d, target)
