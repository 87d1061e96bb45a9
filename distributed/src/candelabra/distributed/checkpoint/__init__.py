"""Checkpoints of several ranks, which any number of ranks loads. As ``torch.distributed.checkpoint``.

A checkpoint is a folder: a safetensors file for each rank that wrote it, and ``manifest.json``.
"""

from __future__ import annotations

from candelabra.distributed.checkpoint._loading import load as load
from candelabra.distributed.checkpoint._manifest import CheckpointException as CheckpointException
from candelabra.distributed.checkpoint._saving import save as save
from candelabra.distributed.checkpoint._storage import FileSystemReader as FileSystemReader
from candelabra.distributed.checkpoint._storage import FileSystemWriter as FileSystemWriter

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "save"]


def __dir__() -> list[str]:
    return sorted(__all__)
