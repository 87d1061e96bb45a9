"""``load``: each rank reads the boxes that overlap its parts, whatever number of ranks has written them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._process_group import own_group
from candelabra.distributed.checkpoint._manifest import Chunk, Manifest
from candelabra.distributed.checkpoint._paths import flattened
from candelabra.distributed.checkpoint._saving import attempt, folder_of, group_of, is_stateful, local_of, part, plain


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read a state from a folder into an existing one: tensors in place, other values by replacement.

    The number of ranks, and the placements of DTensors, may differ from those of :func:`save`. Objects with
    ``load_state_dict`` get their states. ``no_dist``: this process loads alone.

    Raises:
        CheckpointException: a rank has failed, for instance since the folder has no complete checkpoint, or lacks a
            key, or has a tensor of another shape; raised on every rank. States of tensors may be partly loaded then.
    """
    group = own_group() if no_dist else group_of(process_group, "checkpoint.load")
    folder = folder_of(checkpoint_id, storage_reader, planner, "load")
    attempt(group, "the checkpoint was not read", lambda: _read(state_dict, folder))


def _read(state_dict: dict[str, Any], folder: Path) -> None:
    manifest = Manifest.read(folder)
    state = plain(state_dict)
    leaves = flattened(state)
    values = cd.load(folder / manifest.values)["values"]
    missing = [path for path in leaves if path not in manifest.tensors and path not in values]
    if missing:
        raise KeyError(f"the checkpoint in {folder} has no {', '.join(map(repr, missing[:5]))}")
    reader = _BoxReader(folder)
    for path, (container, key) in leaves.items():
        value = container[key]
        if not isinstance(value, Tensor):
            container[key] = values[path] if path in values else reader.whole(manifest, path)
        elif path in values:
            raise TypeError(f"{path!r} is a tensor in the state, but {values[path]!r} in the checkpoint")
        else:
            reader.fill(manifest, path, value)
    for key, value in state_dict.items():
        if is_stateful(value):
            value.load_state_dict(state[key])
        else:
            state_dict[key] = state[key]


class _BoxReader:
    """Reads boxes of tensors from the files of one checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _chunk(self, chunk: Chunk) -> Tensor:
        found: Tensor = cd.load(self._folder / chunk.file, mmap=True, names=[chunk.name])[chunk.name]
        return found

    def whole(self, manifest: Manifest, path: str) -> Tensor:
        """Return a tensor for which the state has none."""
        stored = manifest.tensors[path]
        made = cd.empty(stored.shape, dtype=getattr(cd, stored.dtype))
        self.fill(manifest, path, made)
        return made

    def fill(self, manifest: Manifest, path: str, tensor: Tensor) -> None:
        """Copy the boxes that overlap this rank's part of a tensor."""
        stored, own = manifest.tensors[path], part(path, tensor)
        if stored.shape != own.shape:
            raise ValueError(f"{path!r} has the shape {own.shape} in the state, but {stored.shape} in the checkpoint")
        target = local_of(tensor)
        with cd.no_grad():
            for chunk in stored.chunks:
                low = [max(a, b) for a, b in zip(own.offsets, chunk.offsets, strict=True)]
                high = [
                    min(a + n, b + m)
                    for a, n, b, m in zip(own.offsets, own.sizes, chunk.offsets, chunk.sizes, strict=True)
                ]
                if any(a >= b for a, b in zip(low, high, strict=True)):
                    continue
                source = self._chunk(chunk)[_box(low, high, chunk.offsets)]
                target[_box(low, high, own.offsets)].copy_(source)


def _box(low: list[int], high: list[int], origin: list[int]) -> tuple[Any, ...]:
    box = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, origin, strict=True))
    return box if box else (...,)
