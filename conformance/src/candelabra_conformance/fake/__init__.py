"""A fake accelerator: all the difficult properties of a real device, in pure Python on the host's memory.

Streams defer work until a caller waits, new and freed memory is poisoned, only the device can read its arrays, dtypes
and kernels can be missing, arrays can be immutable, and allocations can fail. The numbers are those of the reference.

Use it with ``with installed(): cd.ones(2, device="fake")``, or on a command line as ``--device fake:0`` or
``fake?immutable,-float64``.
"""

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.contributing import FakeContribution
from candelabra_conformance.fake.installing import installed, parse, provide
from candelabra_conformance.fake.memory import after, every, larger_than, poison
from candelabra_conformance.fake.streams import FakeEvent, Stream

__all__ = [
    "FakeEvent",
    "FakeAccelerator",
    "FakeArray",
    "FakeContribution",
    "Stream",
    "after",
    "every",
    "installed",
    "larger_than",
    "parse",
    "poison",
    "provide",
]
