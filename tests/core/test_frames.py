"""Frequent calls enter few Python functions: each costs some 50 ns, of a microsecond for a whole call."""

from __future__ import annotations

import candelabra as cd

from tests.frames import library_frames


def test_frequent_calls_enter_few_functions() -> None:
    """Functions of the core, without the kernels of a device: the entry, the adapter, the creation of the result."""
    a, b, x = cd.ones(3), cd.ones(3), cd.ones(3, 3)
    assert library_frames(lambda: a + b) <= 3
    assert library_frames(lambda: x[1]) <= 2
    assert library_frames(lambda: a.max()) <= 5
    assert library_frames(lambda: cd.max(a)) <= 5
