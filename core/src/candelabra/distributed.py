"""Several processes: not supported yet. ``is_available()`` is False, so that programs run in one process.

The functions that PyTorch's programs guard by ``is_available()`` and ``is_initialized()`` exist and raise
``NotImplementedError``.
"""

from __future__ import annotations

from candelabra._absent import missing
from candelabra._annotations import Any, Final

_REASON: Final = "distributed training is not supported yet; run one process, where is_initialized() is False"
_NAMES: Final = (
    "all_gather all_gather_object all_reduce all_to_all barrier broadcast broadcast_object_list destroy_process_group "
    "gather gather_object get_backend get_local_rank get_rank get_world_size init_process_group irecv isend "
    "monitored_barrier new_group recv reduce reduce_scatter scatter scatter_object_list send"
)


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
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", *_NAMES.split(),
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
