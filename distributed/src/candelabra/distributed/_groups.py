"""``init_process_group``, ``new_group``, and what they are asked about."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import candelabra as cd
from candelabra.distributed import _engines
from candelabra.distributed._process_group import (
    NON_GROUP_MEMBER,
    ProcessGroup,
    default_group,
    resolved,
    unique_name,
)
from candelabra.distributed._state import ranks
from candelabra.distributed._stores import Store

default_pg_timeout: Final = timedelta(minutes=30)
DEFAULT_ENGINE: Final = "mpi"
HOST_ENGINES: Final = ("gloo",)
"""Names of PyTorch's engines for the host's memory. The default engine serves if no engine has the name."""


def is_available() -> bool:
    """Return True: candelabra-distributed is installed."""
    return True


def is_initialized() -> bool:
    """Return whether ``init_process_group`` has been called."""
    return ranks().default is not None


def is_backend_available(backend: str) -> bool:
    """Return whether an engine is installed and works here."""
    return _engines.available(backend)


def is_mpi_available() -> bool:
    """Return whether mpi4py and an MPI library are installed."""
    return _engines.available("mpi")


def is_nccl_available() -> bool:
    """Return whether an engine ``nccl`` is installed."""
    return _engines.available("nccl")


def is_gloo_available() -> bool:
    """Return whether an engine ``gloo`` is installed."""
    return _engines.available("gloo")


def is_torchelastic_launched() -> bool:
    """Return whether ``candelabra run`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: Any) -> str:
    """Return the engine for tensors on a device: ``"mpi"``, which serves all of them."""
    cd.device(device)
    return DEFAULT_ENGINE


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Create the default group, of all ranks that have been started. Every rank calls it.

    Args:
        backend: the engine, by default ``"mpi"``, which also serves ``"gloo"`` if no engine of that name is installed.
            An engine of devices, such as ``"nccl"``, takes their tensors as they are; the default engine starts the
            ranks and serves the host's memory. ``"type:engine,type:engine"`` names one for each device type.
        init_method: ``tcp://host:port`` sets MASTER_ADDR and MASTER_PORT, by which ranks that no launcher has started
            find each other. Others are accepted and not used: such ranks read the variables (``env://``).
        timeout: the time after which a collective that has not completed raises an error; 30 minutes by default.
        world_size, rank: compared with what the engine knows, if given.
        device_id: the device of this rank. An engine of devices connects the ranks at once, which messages need that
            come before the first collective.
        store: accepted and not used: engines have their own rendezvous.

    Raises:
        ValueError: called twice; the engine is not installed; ``rank`` or ``world_size`` are not those of the engine.
        EngineUnavailable: the engine cannot work here. The text says what to install.
        TypeError: ``timeout`` is no timedelta, or ``backend`` and ``init_method`` are no text.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    limit = _checked_timeout(timeout)
    for name, given in (("backend", backend), ("init_method", init_method)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"init_process_group: {name} must be a string, got {type(given).__name__}")
    if store is not None and not isinstance(store, Store):
        raise TypeError(f"init_process_group: store must be a candelabra.distributed.Store, got {store!r}")
    name = (DEFAULT_ENGINE if backend is None else backend).lower()
    for each in HOST_ENGINES:
        if each in name and each not in _engines.names():
            name = name.replace(each, DEFAULT_ENGINE)
    if init_method is not None and init_method.startswith("tcp://"):
        address = urlsplit(init_method)
        os.environ.update(MASTER_ADDR=address.hostname or "", MASTER_PORT=str(address.port or ""))
    chosen = _engines.engines(name, DEFAULT_ENGINE)
    communicator = chosen.host.start(rank, world_size, limit)
    named = name if ":" not in name else chosen.host.name
    made = ProcessGroup(communicator, range(communicator.size), named, limit, group_name or "world", chosen.devices)
    made.connect(None if device_id is None else cd.device(device_id))
    here = ranks()
    here.default = made
    here.groups.append(made)


def _checked_timeout(timeout: Any) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if timeout <= timedelta(0):
        raise ValueError(f"the timeout must be positive, got {timeout}")
    return timeout


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """Return a group of some ranks, sorted; by default of all. Every rank of the default group calls it.

    On other ranks it returns ``GroupMember.NON_GROUP_MEMBER``. ``timeout``: by default that of the default group.
    """
    from candelabra.distributed._state import ranks as current

    world = default_group()
    members = list(range(world.size())) if ranks is None else sorted(ranks)
    if len(members) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if any(not 0 <= rank < world.size() for rank in members):
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if not members or len(set(members)) < len(members):
        raise ValueError(f"new_group: ranks must be different and at least one, got {members}")
    if backend is not None and backend.lower() != world.engine:
        raise ValueError(f"new_group: a group has the engine of the default group, {world.engine!r}, not {backend!r}")
    limit = world.timeout if timeout is None else _checked_timeout(timeout)
    made: list[Any] = []
    world.submit("new_group", str(members), lambda: made.append(world.communicator.subset(members))).wait()
    if made[0] is None:
        return NON_GROUP_MEMBER
    name = unique_name(group_desc or f"group {len(current().groups)} of ranks {members}")
    group = ProcessGroup(made[0], members, world.engine, limit, name, world.devices)
    group.connect(world.device_id if device_id is None else cd.device(device_id))
    current().groups.append(group)
    return group


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Close a group, or with None all of them. Works under way are completed first."""
    here = ranks()
    if group is NON_GROUP_MEMBER:
        return
    found = resolved(group, "destroy_process_group")
    for each in reversed(here.groups) if found is here.default else [found]:
        each.close()
        here.groups = [other for other in here.groups if other is not each]
    if found is here.default:
        here.default = None


@atexit.register
def forget() -> None:
    """Leave the groups without the other ranks: at exit, and after an error."""
    here = ranks()
    for group in here.groups:
        group.close(wait=False)
    here.default, here.groups = None, []


# -- ranks ------------------------------------------------------------------------------------------------------------
def get_rank(group: Any = None) -> int:
    """Return this rank's place in a group, by default in that of all ranks; -1 if it is not in the group."""
    default_group()
    return -1 if group is NON_GROUP_MEMBER else resolved(group, "get_rank").rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of ranks of a group, by default of all; -1 if this rank is not in the group."""
    default_group()
    return -1 if group is NON_GROUP_MEMBER else resolved(group, "get_world_size").size()


def get_backend(group: Any = None) -> str:
    """Return the name of a group's engine."""
    return resolved(group, "get_backend").engine


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this rank's place among those of its machine, from LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank, or use candelabra run")


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the global ranks of a group, in its order."""
    return list(resolved(group, "get_process_group_ranks").ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the global rank of a place in a group."""
    found = resolved(group, "get_global_rank")
    if not 0 <= group_rank < found.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {found}")
    return found.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the place of a global rank in a group."""
    found = resolved(group, "get_group_rank")
    if global_rank not in found.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {found}")
    return found.ranks.index(global_rank)
