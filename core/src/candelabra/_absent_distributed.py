"""What ``candelabra.distributed`` is where candelabra-distributed is not installed.

Programs run in one process: ``is_available()`` and ``is_initialized()`` are False. Every other function exists and
raises ``ModuleNotFoundError`` with the extra to install.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, Final
from candelabra._reduce_op import ReduceOp

_REASON: Final = 'candelabra-distributed is not installed: pip install "candelabra[distributed]"'
_NAMES: Final = (
    "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast "
    "broadcast_object_list destroy_process_group gather gather_object get_backend get_global_rank get_group_rank "
    "get_process_group_ranks get_rank get_world_size init_process_group irecv isend monitored_barrier new_group recv "
    "reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send"
)


class ProcessGroup:
    """A group of processes: for hints and ``isinstance``, since no group can be created."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ModuleNotFoundError(f"candelabra.distributed.ProcessGroup(): {_REASON}", name="candelabra.distributed")


class group:
    """The groups that PyTorch names: ``WORLD`` is None before ``init_process_group``."""

    WORLD: ProcessGroup | None = None


GroupMember = group


def is_available() -> bool:
    """Return False: candelabra-distributed is not installed."""
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


def _missing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ModuleNotFoundError(f"candelabra.distributed.{name}(): {_REASON}", name="candelabra.distributed")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = "candelabra.distributed"
    refuse.__doc__ = f"Raise ModuleNotFoundError: {_REASON}."
    return refuse


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'candelabra.distributed' has no attribute {name!r}")
    found = globals()[name] = _missing(name)
    return found


__all__ = [
    "GroupMember", "ProcessGroup", "ReduceOp", "group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", *_NAMES.split(),
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
