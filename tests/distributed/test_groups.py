"""Starting and ending process groups, and what they know about ranks. Ranks are threads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra.distributed import _engines, _groups, threads


def test_the_default_group_knows_its_ranks() -> None:
    """Every rank has its number, and all have the same size, engine and ranks."""

    def program() -> Any:
        assert dist.is_initialized()
        assert dist.group.WORLD is dist.GroupMember.WORLD
        world = dist.group.WORLD
        assert isinstance(world, dist.ProcessGroup)
        assert (world.rank(), world.size(), world.name()) == (dist.get_rank(), 3, "threads")
        assert "rank 1 of 3, engine 'threads'" in repr(world) or world.rank() != 1
        return dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_process_group_ranks(None)

    found = threads.run(program, 3)
    assert found == [(rank, 3, "threads", [0, 1, 2]) for rank in range(3)]
    assert not dist.is_initialized()
    assert dist.group.WORLD is None


def test_before_init_every_function_says_so() -> None:
    """There is no default group in this process."""
    calls: list[Any] = [
        dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.new_group, dist.destroy_process_group,
        lambda: dist.all_reduce(cd.ones(2)), lambda: dist.send(cd.ones(2), 1), lambda: dist.all_gather_object([], 1),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(
            ValueError, match="Default process group has not been initialized, please make sure to call"
        ):
            call()


def test_a_group_of_some_ranks() -> None:
    """Its ranks are sorted; on other ranks it is NON_GROUP_MEMBER, with rank and size -1."""

    def program() -> Any:
        group = dist.new_group([3, 1])
        if dist.get_rank() in (0, 2):
            assert group is dist.GroupMember.NON_GROUP_MEMBER
            assert dist.get_rank(group) == dist.get_world_size(group) == -1
            with pytest.raises(
                ValueError, match=r"Running barrier on global rank \d which does not belong to the given"
            ):
                dist.barrier(group)
            dist.destroy_process_group(group)
            return None
        assert dist.get_process_group_ranks(group) == [1, 3]
        assert dist.get_group_rank(group, 3) == 1
        assert dist.get_global_rank(group, 1) == 3
        with pytest.raises(ValueError, match="Global rank 2 is not part of group"):
            dist.get_group_rank(group, 2)
        with pytest.raises(ValueError, match="Group rank 2 is not part of group"):
            dist.get_global_rank(group, 2)
        with pytest.raises(ValueError, match="broadcast: Global rank 0 is not part of group"):
            dist.broadcast(cd.ones(1), 0, group)
        total = cd.tensor([float(dist.get_rank())])
        dist.all_reduce(total, group=group)
        dist.destroy_process_group(group)
        with pytest.raises(ValueError, match="Invalid process group specified or has been destroyed"):
            dist.all_reduce(total, group=group)
        return dist.get_rank(), total.item()

    assert threads.run(program, 4) == [None, (1, 4.0), None, (3, 4.0)]


def test_groups_that_cannot_be_created() -> None:
    """Too many ranks, unknown ones, the same one twice, none, and another engine are refused on every rank."""

    def program() -> None:
        for ranks, text in (
            ([0, 1, 1], "the new group's world size should be less or equal to the world size"),
            ([2], "The new group's rank should be within the world_size set by init_process_group"),
            ([1, 1], r"new_group: ranks must be different and at least one, got \[1, 1\]"),
            ([], r"new_group: ranks must be different and at least one, got \[\]"),
        ):
            with pytest.raises(ValueError, match=text):
                dist.new_group(ranks)
        with pytest.raises(ValueError, match="a group has the engine of the default group, 'threads', not 'nccl'"):
            dist.new_group(backend="nccl")
        assert dist.new_group(timeout=timedelta(seconds=7)).timeout == timedelta(seconds=7)

    threads.run(program, 2)


def test_wrong_arguments_of_init() -> None:
    """The error says what was expected, and no group is created."""

    def program() -> None:
        with pytest.raises(ValueError, match=r"there is no engine 'smoke'; installed are 'mpi', .*'threads'"):
            dist.init_process_group("smoke")
        with pytest.raises(TypeError, match=r"Expected timeout argument to be of type datetime\.timedelta, got 5"):
            dist.init_process_group("threads", timeout=5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="the timeout must be positive"):
            dist.init_process_group("threads", timeout=timedelta(0))
        with pytest.raises(TypeError, match="init_process_group: backend must be a string, got int"):
            dist.init_process_group(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"store must be a candelabra\.distributed\.Store, got <object"):
            dist.init_process_group("threads", store=object())
        with pytest.raises(ValueError, match=r"rank is 7, but this thread is rank 0 of 1"):
            dist.init_process_group("threads", rank=7)
        with pytest.raises(ValueError, match=r"world_size is 2, but this thread is rank 0 of 1"):
            dist.init_process_group("threads", world_size=2)
        assert not dist.is_initialized()
        dist.init_process_group("threads", "env://", world_size=1, rank=0, store=dist.HashStore())
        with pytest.raises(ValueError, match="trying to initialize the default process group twice!"):
            dist.init_process_group("threads")
        dist.destroy_process_group()

    threads.run(program, 1, init=False)


def test_the_default_engine_serves_names_of_pytorchs_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """``"gloo"``, unless an engine has that name."""
    monkeypatch.setattr(_groups, "DEFAULT_ENGINE", "threads")

    def program() -> str:
        dist.init_process_group("gloo")
        return dist.get_backend()

    assert threads.run(program, 2, init=False) == ["threads"] * 2
    monkeypatch.setattr(_engines, "names", lambda: ["gloo"])
    with pytest.raises(ValueError, match="there is no engine 'gloo'"):
        threads.run(program, 1, init=False)


def test_threads_must_be_started_as_ranks() -> None:
    """The engine of threads does not serve a process that is no rank."""
    with pytest.raises(dist.EngineUnavailable, match=r"start them by candelabra\.distributed\.threads\.run"):
        dist.init_process_group("threads")


def test_one_rank_needs_no_thread() -> None:
    """Collectives of a single rank are complete when they return."""

    def program() -> Any:
        x = cd.ones(2)
        work = dist.all_reduce(x, async_op=True)
        assert work is not None
        assert work.is_completed()
        assert work.is_success()
        work.synchronize()
        return x.tolist()

    assert threads.run(program, 1) == [[1.0, 1.0]]


def test_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs ask before they start."""
    assert dist.is_available()
    assert cd.distributed is dist
    assert dist.is_backend_available("threads")
    assert not dist.is_nccl_available()
    assert not dist.is_gloo_available()
    assert dist.get_default_backend_for_device("meta") == "mpi"
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match=r"LOCAL_RANK is not in the environment\. Consider passing fallback_rank"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "5")
    assert dist.get_node_local_rank() == 5
