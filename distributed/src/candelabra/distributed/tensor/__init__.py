"""Tensors that are divided among the ranks of a mesh. As ``torch.distributed.tensor``, with explicit operations."""

from __future__ import annotations

from candelabra.distributed.device_mesh import DeviceMesh as DeviceMesh
from candelabra.distributed.device_mesh import init_device_mesh as init_device_mesh
from candelabra.distributed.tensor import _operations as _operations  # creates its layer before threads compute
from candelabra.distributed.tensor._dtensor import DTensor as DTensor
from candelabra.distributed.tensor._dtensor import distribute_tensor as distribute_tensor
from candelabra.distributed.tensor.placement_types import Partial as Partial
from candelabra.distributed.tensor.placement_types import Placement as Placement
from candelabra.distributed.tensor.placement_types import Replicate as Replicate
from candelabra.distributed.tensor.placement_types import Shard as Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
