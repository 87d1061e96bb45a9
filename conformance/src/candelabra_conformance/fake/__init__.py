"""A fake accelerator: every unkind habit of a real device, in pure Python over the host's memory.

Streams put work off until somebody waits, new and freed memory is poisoned, nobody but the device can look into its
arrays, dtypes and kernels can be missing, arrays can be immutable, allocations can fail; numbers are the reference's.

``with installed(): cd.ones(2, device="fake")``; on a command line ``--device fake:0`` or ``fake?immutable,-float64``.
"""

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.installing import installed, parse, provide
from candelabra_conformance.fake.memory import after, every, larger_than, poison
from candelabra_conformance.fake.streams import Event, Stream

__all__ = [
    "Event",
    "FakeAccelerator",
    "FakeArray",
    "Stream",
    "after",
    "every",
    "installed",
    "larger_than",
    "parse",
    "poison",
    "provide",
]
