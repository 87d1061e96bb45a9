"""Ranks in the form of an array, with a process group for each line of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._groups import get_rank, init_process_group, is_initialized, new_group
from candelabra.distributed._process_group import NON_GROUP_MEMBER, default_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """An array of global ranks. Along each dim, the ranks of a line are a process group.

    Every rank of the default group creates the mesh, also those outside it.

    Args:
        device_type: the type of the devices, for programs that ask; the engine decides what it serves.
        mesh: the ranks, as a tensor of integers or as nested lists.
        mesh_dim_names: names of the dims, by which ``mesh["name"]`` finds the lines of this rank.

    Raises:
        RuntimeError: a rank occurs twice or does not exist; names that are not one per dim, or not different.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _groups: Any = None
    ) -> None:
        self.device_type = device_type
        self.mesh: Tensor = mesh if isinstance(mesh, Tensor) else cd.tensor(mesh)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._check()
        self._lines = _lines(self.mesh.tolist(), self.shape)
        """For each dim, the lists of ranks along it."""
        self._line_meshes: dict[int, DeviceMesh] = {}
        self._groups: list[Any] = [self._group_of(lines) for lines in self._lines] if _groups is None else _groups

    def _check(self) -> None:
        world = default_group().size()
        ranks = self.mesh.reshape(-1).tolist()
        if len(ranks) > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {len(ranks)} ranks!"
            )
        if len(set(ranks)) < len(ranks) or not all(0 <= rank < world for rank in ranks):
            raise RuntimeError(f"a mesh must have different ranks from 0 to {world - 1}, got {self.mesh.tolist()}")
        names = self.mesh_dim_names
        if names is not None and len(names) != self.mesh.ndim:
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found "
                f"{self.mesh.ndim} dims and {len(names)} names"
            )
        if names is not None and len(set(names)) < len(names):
            raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in {names}")

    @staticmethod
    def _group_of(lines: list[list[int]]) -> Any:
        """Create the groups of all lines, and return that of this rank."""
        created = [new_group(line) for line in lines]
        return next((group for group in created if group is not NON_GROUP_MEMBER), NON_GROUP_MEMBER)

    # -- shape and coordinates ----------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of ranks along each dim."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, of all or along a dim."""
        return prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """Return the global rank."""
        return get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Return the indices of this rank in the mesh, or None if it is not in it."""
        found = (self.mesh == get_rank()).nonzero().tolist()
        return found[0] if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this rank's index along a dim, which a mesh of one dim need not name."""
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError(f"rank {get_rank()} is not in the mesh {self}")
        return coordinate[self._dim(mesh_dim, "get_local_rank")]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """Return the group of this rank's line along a dim, which a mesh of one dim need not name."""
        return self._groups[self._dim(mesh_dim, "get_group")]

    def get_all_groups(self) -> list[Any]:
        """Return the groups of this rank's lines along all dims."""
        return list(self._groups)

    def _dim(self, mesh_dim: int | str | None, call: str) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                    f"specified when device_mesh.ndim > 1 in {call}()."
                )
            return 0
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r} specified. Valid mesh_dim_names are {names}.")
            return names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise IndexError(f"{call}(): the mesh has {self.ndim} dims, got dim {mesh_dim}")
        return mesh_dim % self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of the mesh along some dims that contains this rank. It shares the groups."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else mesh_dim_names
        dims = [self._dim(name, "__getitem__") for name in names]
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError(f"rank {get_rank()} is not in the mesh {self}")
        index = tuple(slice(None) if dim in dims else own for dim, own in enumerate(coordinate))
        kept = sorted(dims)
        mesh = self.mesh[index].permute([kept.index(dim) for dim in dims])
        return DeviceMesh(self.device_type, mesh, mesh_dim_names=names, _groups=[self._groups[dim] for dim in dims])

    def line(self, dim: int) -> DeviceMesh:
        """Return the mesh of one dim of the ranks along a dim that contain this one. It shares the group."""
        if dim not in self._line_meshes:
            coordinate = self.get_coordinate()
            if coordinate is None:
                raise RuntimeError(f"rank {get_rank()} is not in the mesh {self}")
            index = tuple(slice(None) if other == dim else own for other, own in enumerate(coordinate))
            names = None if self.mesh_dim_names is None else self.mesh_dim_names[dim : dim + 1]
            self._line_meshes[dim] = DeviceMesh(
                self.device_type, self.mesh[index], mesh_dim_names=names, _groups=[self._groups[dim]]
            )
        return self._line_meshes[dim]

    def __repr__(self) -> str:
        if self.mesh_dim_names is None:
            return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()})"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}, mesh_dim_names={self.mesh_dim_names})"


def _lines(mesh: Any, shape: Sequence[int]) -> list[list[list[int]]]:
    """Return, for each dim, the lists of ranks along it."""
    whole = cd.tensor(mesh)
    return [whole.movedim(dim, -1).reshape(-1, shape[dim]).tolist() for dim in range(len(shape))]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Return a mesh of the ranks 0, 1, … in C order. It calls ``init_process_group()`` if no group exists.

    ``device_type`` has no index. ``backend_override`` must be None.
    """
    if ":" in device_type:
        raise RuntimeError(f"Device type with index is not supported but got {device_type}: pass device.type")
    if backend_override is not None:
        raise NotImplementedError("init_device_mesh: backend_override is not supported: all groups have one engine")
    if not is_initialized():
        init_process_group()
    shape = tuple(mesh_shape)
    return DeviceMesh(device_type, cd.arange(prod(shape)).reshape(shape), mesh_dim_names=mesh_dim_names)


def __dir__() -> list[str]:
    return sorted(__all__)
