"""Host memory: allocations that fail, and invalid sizes."""

import candelabra as cd
import pytest
from candelabra_cpu.backend import allocate


def test_a_negative_size_is_no_lack_of_memory() -> None:
    """NumPy's own error is raised, since OutOfMemoryError would mislead."""
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        allocate((2, -1), cd.float32)


def test_a_failed_allocation_is_a_typed_error() -> None:
    """The error has the shape and the dtype."""
    with pytest.raises(cd.OutOfMemoryError, match=r"cannot allocate \[1125899906842624\] of .*float32 on the CPU"):
        allocate((1 << 50,), cd.float32)
