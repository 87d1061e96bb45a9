"""More than 2**31 elements along a dim, and more rows than a grid of 65,535 tiles: offsets that 32 bits cannot hold.

These cases take gigabytes and run with ``--huge`` only. A case whose arrays do not fit the memory of the device or the
host is skipped. All expected values are known without a computation of this size.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import candelabra as cd
import numpy as np
from candelabra.dtypes import BY_NAME, dtype
from candelabra.errors import OutOfMemoryError

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.properties.registry import Axis, device_property
from candelabra_conformance.transport import to_host

COUNT: Final = 2**31 + 17
"""The number of elements along a dim."""
TILES: Final = 65_535 * 64
"""The number of rows that a grid of 65,535 blocks of 64 rows covers."""
GIB: Final = 2**30

Found = Iterator[tuple[str, Any, Any]]
"""What was computed, the values, and the values that are due."""


class Check(NamedTuple):
    """A check of arrays of ``elements`` elements (or rows), of which ``arrays`` are alive at once."""

    dtype: str
    run: Callable[[int], Found]
    elements: int = COUNT
    arrays: float = 2.0

    @property
    def size(self) -> int:
        """The number of bytes of all arrays."""
        return int(self.elements * self.arrays * BY_NAME[self.dtype].itemsize)


def written(count: int) -> Found:
    """Elements at the end are written, also by a slice, and copied."""
    x = cd.zeros(count, dtype=cd.uint8)
    x[-1] = 7
    x[count - 5 :].add_(1)
    yield "the last elements", to_host(x[count - 6 :]), [0, 1, 1, 1, 1, 8]
    yield "those of a copy", to_host(x.clone()[count - 6 :]), [0, 1, 1, 1, 1, 8]
    yield "their sum", x.sum().item(), 12


def added(count: int) -> Found:
    """Sums along the dim: of ones, whose number 32 bits cannot hold, and of bytes."""
    x = cd.ones(count, dtype=cd.bool)
    yield "sum() of True", x.sum().item(), count
    yield "sum(0) of True", x.sum(0).item(), count
    x[-1] = False
    yield "all()", x.all().item(), False
    yield "any() of the last half", x[count // 2 :].any().item(), True


def compared(count: int) -> Found:
    """The extreme is the last element, and its position needs more than 31 bits."""
    x = cd.zeros(count, dtype=cd.uint8)
    x[-1] = 9
    yield "argmax()", x.argmax().item(), count - 1
    yield "argmax(0)", x.argmax(0).item(), count - 1
    yield "amax()", x.amax().item(), 9


def computed(count: int) -> Found:
    """A pointwise result is right to its end."""
    x = cd.zeros(count, dtype=cd.uint8)
    x[-2:] = 250
    yield "x + 7", to_host((x + 7)[-3:]), [7, 1, 1]
    x.mul_(3)
    yield "x.mul_(3)", to_host(x[-3:]), [0, 238, 238]


def indexed(count: int) -> Found:
    """Positions around 2**31 are read and written by indices."""
    around = [0, count - 19, count - 18, count - 17, count - 2, count - 1]
    x = cd.zeros(count, dtype=cd.uint8)
    places = cd.tensor(around)
    x[places] = cd.arange(1, 7, dtype=cd.uint8)
    yield "x[indices]", to_host(x[places]), [1, 2, 3, 4, 5, 6]
    yield "index_select()", to_host(x.index_select(0, places)), [1, 2, 3, 4, 5, 6]
    yield "gather()", to_host(x.gather(0, places)), [1, 2, 3, 4, 5, 6]
    yield "single elements", [x[place].item() for place in around], [1, 2, 3, 4, 5, 6]
    yield "nonzero()", to_host(x.nonzero()[:, 0]), around
    x.index_add_(0, places[-1:], cd.full((1,), 10, dtype=cd.uint8))
    yield "index_add_()", x[-1].item(), 16


def scanned(count: int) -> Found:
    """A cumulative sum in bytes, modulo 256, counts the ones before each place."""
    x = cd.ones(count, dtype=cd.uint8).cumsum(0, dtype=cd.uint8)
    yield "cumsum()", to_host(x[-3:]), [(count - 2) % 256, (count - 1) % 256, count % 256]
    yield "cumsum() in the middle", x[count // 2].item(), (count // 2 + 1) % 256


def joined(count: int) -> Found:
    """A concatenation, and a slice with a step, across 2**31."""
    half = count // 2
    x = cd.cat((cd.zeros(half, dtype=cd.bool), cd.ones(count - half, dtype=cd.bool)))
    yield "cat() at the seam", to_host(x[half - 2 : half + 2]), [False, False, True, True]
    yield "the number of True", x.sum().item(), count - half
    yield "a slice with a step", to_host(x[half - 1 :: half // 2][:3]), [False, True, True]


def transposed(count: int) -> Found:
    """The copy of a transposed matrix has each element at its place."""
    half = count // 2
    x = cd.zeros((2, half), dtype=cd.uint8)
    x[0, -1], x[1, 0], x[1, -1] = 1, 2, 3
    y = x.t().contiguous()
    yield "contiguous() of t()", to_host(y[[0, half - 1]]), [[0, 2], [1, 3]]
    yield "the sum of each column", to_host(y.sum(0)), [1, 5]


def multiplied(count: int) -> Found:
    """Each of the last rows of a product is the sum of that row."""
    x = cd.ones((count, 8))
    x[-1] = 3.0
    y = x @ cd.ones((8, 4))
    yield "the last rows of a product", to_host(y[-2:]), [[8.0] * 4, [24.0] * 4]
    yield "its sum", y[:, 0].sum(dtype=cd.int64).item(), 8 * (count - 1) + 24


CHECKS: Final[dict[str, Check]] = {
    "write": Check("uint8", written),
    "sum": Check("bool", added, arrays=1.5),
    "extreme": Check("uint8", compared, arrays=1.5),
    "pointwise": Check("uint8", computed),
    "index": Check("uint8", indexed, arrays=2.5),
    "cumsum": Check("uint8", scanned, arrays=2.5),
    "cat": Check("bool", joined),
    "transpose": Check("uint8", transposed),
    "matmul": Check("float32", multiplied, elements=TILES + 65, arrays=8 + 4),
}
"""The checks by name, which stands in the place of the layout in the ids of cases: ``device/huge/uint8/index``."""


def _checks(context: Context) -> Iterator[Axis]:
    for name, check in CHECKS.items():
        if BY_NAME[check.dtype] in context.instance.capabilities.storage:
            yield Axis(BY_NAME[check.dtype], name, 3)


@device_property("huge", _checks)
def huge(context: Context, d: dtype | None, layout: str) -> None:
    """Elements beyond 2**31 and rows beyond 65,535 blocks are written, read, copied, summed, indexed and multiplied."""
    check = CHECKS[layout]
    if any(size < check.size for size in memories(context).values()):
        gc.collect()
    for name, size in memories(context).items():
        if size < check.size:
            raise NotApplicable(f"{name} has {size / GIB:.1f} GiB left, and the case needs {check.size / GIB:.1f}")
    try:
        with context.device:
            for name, got, want in check.run(check.elements):
                if not np.array_equal(np.asarray(got), np.asarray(want)):
                    raise Failure(f"{name}, of {check.elements} elements: got {got}, {want} is due")
    except OutOfMemoryError as error:
        raise NotApplicable(f"the memory does not suffice: {error}") from error


def memories(context: Context) -> dict[str, int]:
    """Return the bytes that are left on the host and on the device, as far as they are known."""
    found = {"the host": available_memory()}
    info = context.instance.backend.devices()[context.instance.index]
    sizes = [fact for name, fact in info.facts.items() if name.endswith("memory") and isinstance(fact, int)]
    if sizes:
        found["the device"] = max(sizes) - context.instance.backend.memory(context.instance.index).get("allocated", 0)
    return {name: size for name, size in found.items() if size}


def available_memory() -> int:
    """Return the host's free memory in bytes with that of its caches, or 0 if the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = dict(line.split(":", 1) for line in lines)
        return int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if hasattr(os, "sysconf") else 0
