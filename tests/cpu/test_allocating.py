"""Memory on the host: what cannot be allocated, and what is no size."""

import candelabra as cd
import pytest
from candelabra_cpu.backend import allocate


def test_a_negative_size_is_no_lack_of_memory() -> None:
    """NumPy's own error comes through: running out of memory would be the wrong thing to look for."""
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        allocate((2, -1), cd.float32)


def test_more_than_there_is_room_for_is_a_typed_error() -> None:
    """With the shape and the dtype in it."""
    with pytest.raises(cd.OutOfMemoryError, match=r"cannot allocate \[1125899906842624\] of .*float32 on the CPU"):
        allocate((1 << 50,), cd.float32)
