"""Collectives through which gradients flow: :mod:`candelabra.distributed.nn.functional`."""

from __future__ import annotations

from candelabra.distributed.nn.functional import (
    all_gather as all_gather,
)
from candelabra.distributed.nn.functional import (
    all_reduce as all_reduce,
)
from candelabra.distributed.nn.functional import (
    all_to_all_single as all_to_all_single,
)
from candelabra.distributed.nn.functional import (
    broadcast as broadcast,
)
from candelabra.distributed.nn.functional import (
    gather as gather,
)
from candelabra.distributed.nn.functional import (
    reduce as reduce,
)
from candelabra.distributed.nn.functional import (
    reduce_scatter as reduce_scatter,
)
from candelabra.distributed.nn.functional import (
    scatter as scatter,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
