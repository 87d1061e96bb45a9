"""Collectives of objects: JSON and tensors, in the format of ``candelabra.save``. No pickle is written or read."""

from __future__ import annotations

import io
from typing import Any

import candelabra as cd
from candelabra.distributed._collectives import root_of
from candelabra.distributed._process_group import ProcessGroup, resolved
from candelabra.distributed.engine import Communicator


def _encoded(obj: Any) -> bytes:
    """Return an object as bytes. Raise TypeError with the path of a value that is neither JSON nor a tensor."""
    file = io.BytesIO()
    cd.save({"object": obj}, file)
    return file.getvalue()


def _decoded(data: bytes | bytearray | memoryview) -> Any:
    return cd.load(io.BytesIO(bytes(data)))["object"]


def _sizes(communicator: Communicator, own: int) -> list[int]:
    sizes = bytearray(8 * communicator.size)
    communicator.all_gather(memoryview(own.to_bytes(8, "little")), memoryview(sizes))
    return [int.from_bytes(sizes[i : i + 8], "little") for i in range(0, len(sizes), 8)]


def _everywhere(g: ProcessGroup, name: str, obj: Any) -> list[bytes]:
    """Return the encoded objects of all ranks."""
    data = _encoded(obj)
    found: list[bytes] = []

    def task() -> None:
        sizes = _sizes(g.communicator, len(data))
        width = max(sizes)
        everything = bytearray(width * g.size())
        g.communicator.all_gather(memoryview(bytearray(data.ljust(width, b"\0"))), memoryview(everything))
        found.extend(bytes(everything[i * width : i * width + size]) for i, size in enumerate(sizes))

    g.submit(name, "", task).wait()
    return found


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all ranks into ``object_list``, whose length is the number of ranks."""
    g = resolved(group, "all_gather_object")
    if len(object_list) != g.size():
        raise ValueError(f"all_gather_object: object_list must have {g.size()} elements, got {len(object_list)}")
    object_list[:] = [_decoded(data) for data in _everywhere(g, "all_gather_object", obj)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all ranks into ``object_gather_list`` on the rank ``dst``, by default 0."""
    g = resolved(group, "gather_object")
    root = 0 if dst is None and group_dst is None else root_of(g, dst, group_dst, "dst", "gather_object")
    if g.rank() == root and object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if g.rank() != root and object_gather_list is not None:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    found = _everywhere(g, "gather_object", obj)
    if object_gather_list is not None:
        object_gather_list[:] = [_decoded(data) for data in found]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the elements of every rank's list by those of the rank ``src``, by default 0."""
    g = resolved(group, "broadcast_object_list")
    root = 0 if src is None and group_src is None else root_of(g, src, group_src, "src", "broadcast_object_list")
    data = _encoded(list(object_list)) if g.rank() == root else b""
    found: list[bytearray] = []

    def task() -> None:
        size = bytearray(len(data).to_bytes(8, "little"))
        g.communicator.broadcast(memoryview(size), root)
        whole = bytearray(data) if g.rank() == root else bytearray(int.from_bytes(size, "little"))
        g.communicator.broadcast(memoryview(whole), root)
        found.append(whole)

    g.submit("broadcast_object_list", f"src={g.ranks[root]}", task).wait()
    if g.rank() != root:
        received = _decoded(found[0])
        if len(received) != len(object_list):
            raise ValueError(
                f"broadcast_object_list: rank {g.ranks[root]} has sent {len(received)} objects, this list has "
                f"{len(object_list)}"
            )
        object_list[:] = received


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Write one element of the list of the rank ``src``, by default 0, into the first element of each rank's list."""
    g = resolved(group, "scatter_object_list")
    root = 0 if src is None and group_src is None else root_of(g, src, group_src, "src", "scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    parts: list[bytes] = []
    if g.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != g.size():
            raise ValueError(f"scatter_object_list: scatter_object_input_list must have {g.size()} elements on src")
        parts = [_encoded(each) for each in scatter_object_input_list]
    found: list[bytearray] = []

    def task() -> None:
        table = bytearray(b"".join(len(part).to_bytes(8, "little") for part in parts) or 8 * g.size())
        g.communicator.broadcast(memoryview(table), root)
        sizes = [int.from_bytes(table[i : i + 8], "little") for i in range(0, len(table), 8)]
        own = bytearray(sizes[g.rank()])
        sends = sizes if g.rank() == root else [0] * g.size()
        receives = [len(own) if rank == root else 0 for rank in range(g.size())]
        g.communicator.all_to_all(memoryview(bytearray(b"".join(parts))), memoryview(own), sends, receives)
        found.append(own)

    g.submit("scatter_object_list", f"src={g.ranks[root]}", task).wait()
    scatter_object_output_list[0] = _decoded(found[0])
