"""``save``: each rank writes its parts to one file, and the first rank writes the manifest."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.distributed._process_group import ProcessGroup, own_group, resolved
from candelabra.distributed.checkpoint._manifest import SUFFIX, CheckpointException, Chunk, Manifest, ManifestTensor
from candelabra.distributed.checkpoint._paths import flattened
from candelabra.distributed.tensor import DTensor
from candelabra.distributed.tensor._dtensor import box_of


class Part(NamedTuple):
    """A rank's part of a tensor."""

    path: str
    shape: list[int]
    dtype: str
    offsets: list[int]
    sizes: list[int]
    size: int
    """In bytes."""

    @property
    def name(self) -> str:
        """The name of the part in a file."""
        return f"{self.path}@{','.join(map(str, self.offsets))}"


def group_of(process_group: Any, call: str) -> ProcessGroup:
    """Return the group that saves or loads together; this process alone before ``init_process_group``."""
    if process_group is None and not dist.is_initialized():
        return own_group()
    return resolved(process_group, call)


def part(path: str, tensor: Tensor) -> Part:
    """Return the description of the part that this rank has of a tensor."""
    if isinstance(tensor, DTensor):
        offsets, sizes = box_of(tensor._splits)
        shape = list(tensor.shape)
    else:
        sizes = shape = list(tensor.shape)
        offsets = [0] * len(shape)
    count = 1
    for size in sizes:
        count *= size
    return Part(path, shape, tensor.dtype.name, offsets, sizes, count * tensor.dtype.itemsize)


def plain(state: Any) -> Any:
    """Return the state with objects that have ``state_dict()`` replaced by their states."""
    return {key: value.state_dict() if is_stateful(value) else value for key, value in state.items()}


def is_stateful(value: Any) -> bool:
    """Return whether a value of a state is an object with a state of its own."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
) -> Manifest:
    """Write a state to a folder. Every rank of the group calls it with the same keys.

    Each rank writes its parts of DTensors, and a share of the tensors that all ranks have, to a safetensors file. The
    first rank then writes the manifest, which completes the checkpoint: if a rank fails or is killed before, the folder
    has the former checkpoint, or none. Values that are no tensors are those of the first rank: JSON.

    Args:
        state_dict: nested dictionaries and lists; top-level objects with ``state_dict`` and ``load_state_dict`` too.
        checkpoint_id: the folder.
        storage_writer: a :class:`FileSystemWriter`, in place of ``checkpoint_id``.
        planner: must be None.
        process_group: the ranks, by default all. Without ``init_process_group``, this process alone.

    Raises:
        CheckpointException: a rank has failed; raised on every rank, with the error.
    """
    group = group_of(process_group, "checkpoint.save")
    folder = folder_of(checkpoint_id, storage_writer, planner, "save")
    state = plain(state_dict)
    leaves = {path: container[key] for path, (container, key) in flattened(state).items()}
    tensors = {path: value for path, value in leaves.items() if isinstance(value, Tensor)}
    own = [part(path, tensor) for path, tensor in tensors.items()]
    everyone: list[Any] = [None] * group.size()
    dist.all_gather_object(everyone, [list(each) for each in own], group)
    writers = assign([[Part(*fields) for fields in rank] for rank in everyone])
    begun = [uuid.uuid4().hex]
    dist.broadcast_object_list(begun, group=group, group_src=0)
    files = [f"{begun[0]}-{rank}{SUFFIX}" for rank in range(group.size())]
    mine = folder / files[group.rank()]

    def write() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        parts = {
            each.name: local_of(tensors[each.path])
            for each in own
            if writers.get((each.path, each.name), (-1,))[0] == group.rank()
        }
        values = {path: value for path, value in leaves.items() if path not in tensors} if group.rank() == 0 else {}
        cd.save({"tensors": parts, "values": values}, mine)

    attempt(group, "the checkpoint was not written", write, lambda: mine.unlink(missing_ok=True))
    stored: dict[str, ManifestTensor] = {}
    for (path, name), (rank, each) in writers.items():
        entry = stored.setdefault(path, ManifestTensor(each.shape, each.dtype))
        entry.chunks.append(Chunk(files[rank], f"tensors.{name}", each.offsets, each.sizes))
    manifest = Manifest(stored, files[0], files)
    attempt(group, "the manifest was not written", lambda: manifest.write(folder) if group.rank() == 0 else None)
    return manifest


def local_of(tensor: Tensor) -> Tensor:
    """Return the plain tensor of a part."""
    return tensor.to_local().detach() if isinstance(tensor, DTensor) else tensor.detach()


def assign(everyone: list[list[Part]]) -> dict[tuple[str, str], tuple[int, Part]]:
    """Return the rank that writes each part: of those that have it, the one with the fewest bytes so far."""
    holders: dict[tuple[str, str], list[int]] = {}
    known: dict[tuple[str, str], Part] = {}
    for rank, parts in enumerate(everyone):
        for each in parts:
            if 0 in each.sizes and 0 not in each.shape:
                continue  # this rank has nothing of the tensor
            holders.setdefault((each.path, each.name), []).append(rank)
            known[each.path, each.name] = each
    load = [0] * len(everyone)
    writers = {}
    for key in sorted(holders, key=lambda key: (-known[key].size, key)):
        rank = min(holders[key], key=lambda rank: load[rank])
        load[rank] += known[key].size
        writers[key] = rank, known[key]
    return writers


def attempt(
    group: ProcessGroup, message: str, action: Callable[[], object], undo: Callable[[], object] = lambda: None
) -> None:
    """Do something on every rank. If one fails, undo it on all, and raise CheckpointException on all."""
    text: str | None = None
    try:
        action()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    results: list[Any] = [None] * group.size()
    dist.all_gather_object(results, text, group)
    failures = {group.ranks[rank]: result for rank, result in enumerate(results) if result is not None}
    if failures:
        undo()
        raise CheckpointException(message, failures)


def folder_of(checkpoint_id: Any, storage: Any, planner: Any, call: str) -> Path:
    """Return the folder of a checkpoint."""
    if planner is not None:
        raise NotImplementedError(f"checkpoint.{call}: planner must be None")
    given = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)
    if given is None:
        raise ValueError(f"checkpoint.{call}: pass checkpoint_id, the folder, or a storage with a path")
    return Path(given)
