"""DeviceMesh: ranks as an array, with groups along its dims. Ranks are threads."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra.distributed import threads
from candelabra.distributed.device_mesh import DeviceMesh, init_device_mesh


def test_each_rank_has_a_group_along_each_dim() -> None:
    """Sums over the groups are those over the lines of the array."""

    def program() -> Any:
        rank = dist.get_rank()
        mesh = init_device_mesh("cpu", (2, 3), mesh_dim_names=("replicas", "shards"))
        row, column = divmod(rank, 3)
        assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size(1)) == ((2, 3), 2, 6, 3)
        assert mesh.get_coordinate() == [row, column]
        assert mesh.get_rank() == rank
        assert (mesh.get_local_rank("replicas"), mesh.get_local_rank(-1)) == (row, column)
        assert dist.get_process_group_ranks(mesh.get_group("shards")) == [3 * row + i for i in range(3)]
        assert dist.get_process_group_ranks(mesh.get_group(0)) == [column, column + 3]
        shards = mesh["shards"]
        assert shards.get_group() is mesh.get_group(1)
        assert shards.get_local_rank() == column
        assert mesh.get_all_groups() == [mesh.get_group(0), mesh.get_group(1)]
        swapped = mesh["shards", "replicas"]
        assert swapped.mesh.tolist() == [[0, 3], [1, 4], [2, 5]]
        assert repr(shards) == f"DeviceMesh('cpu', {[3 * row + i for i in range(3)]}, mesh_dim_names=('shards',))"
        total = cd.tensor([float(rank)])
        dist.all_reduce(total, group=mesh.get_group("replicas"))
        assert total.item() == 2 * column + 3

    threads.run(program, 6)


def test_ranks_outside_the_mesh() -> None:
    """They create it too, and have no coordinate."""

    def program() -> None:
        mesh = DeviceMesh("cpu", [[2], [0]])
        assert repr(mesh) == "DeviceMesh('cpu', [[2], [0]])"
        if dist.get_rank() == 1:
            assert mesh.get_coordinate() is None
            assert mesh.get_group(0) is dist.GroupMember.NON_GROUP_MEMBER
            with pytest.raises(RuntimeError, match="rank 1 is not in the mesh"):
                mesh.get_local_rank(0)
        else:
            assert mesh.get_local_rank(0) == (0 if dist.get_rank() == 2 else 1)

    threads.run(program, 3)


def test_wrong_meshes() -> None:
    """Sizes, ranks, names and dims that do not fit."""

    def program() -> None:
        cases: list[tuple[Any, type[Exception], str]] = [
            (
                lambda: init_device_mesh("cpu", (3,)),
                RuntimeError,
                "bigger than default world size 2, but found 3 ranks",
            ),
            (lambda: DeviceMesh("cpu", [0, 0]), RuntimeError, r"different ranks from 0 to 1, got \[0, 0\]"),
            (lambda: DeviceMesh("cpu", [2]), RuntimeError, r"different ranks from 0 to 1, got \[2\]"),
            (
                lambda: init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b")),
                RuntimeError,
                "mesh_shape and mesh_dim_names should have same length! Found 1 dims and 2 names",
            ),
            (
                lambda: init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "a")),
                RuntimeError,
                "Each mesh_dim_name must be unique",
            ),
            (lambda: init_device_mesh("cpu:0", (2,)), RuntimeError, "Device type with index is not supported"),
            (
                lambda: init_device_mesh("cpu", (2,), backend_override={}),
                NotImplementedError,
                "backend_override is not supported",
            ),
        ]
        for call, error, text in cases:
            with pytest.raises(error, match=text):
                call()
        mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
        with pytest.raises(
            RuntimeError, match=r"have 2 dimensions. Optional kwarg `mesh_dim` needs .* in get_group\(\)"
        ):
            mesh.get_group()
        with pytest.raises(
            KeyError, match=r"Invalid mesh_dim_name 'c' specified. Valid mesh_dim_names are \('a', 'b'\)"
        ):
            _ = mesh["c"]
        with pytest.raises(IndexError, match=r"get_local_rank\(\): the mesh has 2 dims, got dim 2"):
            mesh.get_local_rank(2)

    threads.run(program, 2)


def test_part_of_a_mesh_needs_a_rank_inside() -> None:
    """A rank outside has no line in any dim."""

    def program() -> None:
        mesh = DeviceMesh("cpu", [0], mesh_dim_names=["x"])
        if dist.get_rank() == 1:
            with pytest.raises(RuntimeError, match="rank 1 is not in the mesh DeviceMesh"):
                _ = mesh["x"]
        else:
            assert mesh["x"].size() == 1

    threads.run(program, 2)


def test_it_creates_the_default_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the default engine, if there is none."""
    monkeypatch.setattr("candelabra.distributed._groups.DEFAULT_ENGINE", "threads")

    def program() -> None:
        assert init_device_mesh("cpu", (2,)).size() == 2
        assert dist.is_initialized()

    threads.run(program, 2, init=False)
