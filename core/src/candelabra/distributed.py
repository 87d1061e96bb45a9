"""Several processes: not supported yet. ``is_available()`` is False, so that programs run in one process.

The functions that PyTorch's programs guard by ``is_available()`` and ``is_initialized()`` exist and raise
``NotImplementedError``.
"""

from __future__ import annotations

from enum import Enum

from candelabra._absent import missing
from candelabra._annotations import Any, Final

_REASON: Final = "distributed training is not supported yet; run one process, where is_initialized() is False"
_NAMES: Final = (
    "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast "
    "broadcast_object_list destroy_process_group gather gather_object get_backend get_local_rank get_rank "
    "get_world_size init_process_group irecv isend monitored_barrier new_group recv reduce reduce_scatter "
    "reduce_scatter_tensor scatter scatter_object_list send"
)


class ReduceOp(Enum):
    """The reductions of collective functions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ProcessGroup:
    """A group of processes: for hints and ``isinstance``, since no group can be created yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"candelabra.distributed.ProcessGroup(): {_REASON}")


class group:
    """The groups that PyTorch names: ``WORLD`` is None before ``init_process_group``."""

    WORLD: ProcessGroup | None = None


GroupMember = group


def is_available() -> bool:
    """Return False: distributed training is not supported yet."""
    return False


def is_initialized() -> bool:
    """Return False: there is no process group."""
    return False


def is_torchelastic_launched() -> bool:
    """Return False: no launcher has started this process."""
    return False


def is_backend_available(backend: str) -> bool:
    """Return False for every communication library."""
    return False


def is_nccl_available() -> bool:
    """Return False."""
    return False


def is_gloo_available() -> bool:
    """Return False."""
    return False


def is_mpi_available() -> bool:
    """Return False."""
    return False


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = missing("distributed", name, _REASON)
    return found


__all__ = [
    "GroupMember", "ProcessGroup", "ReduceOp", "group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", *_NAMES.split(),
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
