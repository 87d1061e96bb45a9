"""The manifest of a checkpoint: which file has which part of each tensor. Writing it completes the checkpoint."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

NAME: Final = "manifest.json"
VERSION: Final = 1
SUFFIX: Final = ".safetensors"


class CheckpointException(RuntimeError):
    """A checkpoint cannot be written or read. ``failures`` has the error of each rank that failed."""

    def __init__(self, message: str, failures: dict[int, str]) -> None:
        super().__init__(f"{message}: " + "; ".join(f"rank {rank}: {text}" for rank, text in failures.items()))
        self.failures = failures


@dataclass
class Chunk:
    """A box of a tensor, in a file."""

    file: str
    name: str
    offsets: list[int]
    sizes: list[int]


@dataclass
class ManifestTensor:
    """A tensor of a checkpoint."""

    shape: list[int]
    dtype: str
    chunks: list[Chunk] = field(default_factory=list)


@dataclass
class Manifest:
    """The tensors of a checkpoint, the file with the other values, and all files."""

    tensors: dict[str, ManifestTensor]
    values: str
    files: list[str]
    version: int = VERSION

    def write(self, folder: Path) -> None:
        """Write the manifest atomically, then remove the files of earlier and of unfinished checkpoints."""
        temporary = folder / f"{NAME}.new"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / NAME)
        for path in folder.glob(f"*{SUFFIX}"):
            if path.name not in self.files:
                path.unlink(missing_ok=True)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder. Raise FileNotFoundError if the folder has no complete checkpoint."""
        try:
            text = (folder / NAME).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(f"{folder} has no complete checkpoint: there is no {NAME}") from None
        data: dict[str, Any] = json.loads(text)
        if data.get("version") != VERSION:
            raise ValueError(f"{folder / NAME} has version {data.get('version')}, this program reads {VERSION}")
        tensors = {
            path: ManifestTensor(entry["shape"], entry["dtype"], [Chunk(**chunk) for chunk in entry["chunks"]])
            for path, entry in data["tensors"].items()
        }
        return cls(tensors, data["values"], data["files"])
