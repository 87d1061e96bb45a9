"""Several processes: groups of ranks, and collective operations between them. As ``torch.distributed``.

An engine moves the bytes: ``mpi``, or that of another package (:mod:`candelabra.distributed.engine` is the contract).
``candelabra run -n 4 script.py`` starts a program on several ranks.
"""

from __future__ import annotations

from candelabra.distributed._checking import MismatchedCollective as MismatchedCollective
from candelabra.distributed._checking import debug_level as get_debug_level
from candelabra.distributed._checking import set_debug_level as set_debug_level
from candelabra.distributed._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from candelabra.distributed._grad_bucket import GradBucket
from candelabra.distributed._groups import (
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)
from candelabra.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    scatter_object_list,
)
from candelabra.distributed._point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    monitored_barrier,
    recv,
    send,
)
from candelabra.distributed._process_group import GroupMember, ProcessGroup, group
from candelabra.distributed._stores import DistStoreError, FileStore, HashStore, PrefixStore, Store, TCPStore
from candelabra.distributed._work import DistBackendError, DistError, Work
from candelabra.distributed.device_mesh import DeviceMesh, init_device_mesh
from candelabra.distributed.engine import EngineUnavailable
from candelabra.library import ReduceOp

__all__ = [
    # starting
    "destroy_process_group", "init_process_group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "new_group",
    "default_pg_timeout", "get_default_backend_for_device",
    # groups and ranks
    "DeviceMesh", "init_device_mesh",
    "GroupMember", "ProcessGroup", "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group",
    # collectives
    "GradBucket", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_reduce", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter",
    # messages and objects
    "P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send",
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list",
    # stores
    "DistStoreError", "FileStore", "HashStore", "PrefixStore", "Store", "TCPStore",
    # errors and debugging
    "DistBackendError", "DistError", "EngineUnavailable", "MismatchedCollective", "get_debug_level", "set_debug_level",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
