"""Checkpoints in several files, with an index (``model.safetensors.index.json``, ``pytorch_model.bin.index.json``).

The index is JSON: ``{"metadata": {…}, "weight_map": {tensor: file}}``. The files are in the folder of the index. Their
names are checked, so that an index cannot name a file elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._serialization.kinds import kind_of
from candelabra._serialization.safetensors_file import MAX_HEADER_BYTES, looks_like, parse_json
from candelabra._serialization.torch_file import ZIP_START
from candelabra.errors import FileFormatError

__all__ = ["read"]


def read(path: str, names: frozenset[str] | None, load: Callable[[str, frozenset[str]], Any]) -> dict[str, Any]:
    """Return the tensors of all files of an index by name, in the order of the index; with ``names`` only these.

    ``load`` loads some tensors of one file.

    Raises:
        FileFormatError: an index of another form, or a file that lacks a tensor which the index has there.
    """
    folder = os.path.dirname(path)
    files: dict[str, list[str]] = {}
    order = []
    for name, file in _weight_map(path).items():
        if names is None or name in names:
            files.setdefault(file, []).append(name)
            order.append(name)
    found: dict[str, Any] = {}
    for file, some in files.items():
        shard = os.path.join(folder, file)
        with open(shard, "rb") as f:
            start = f.read(9)
        if not looks_like(start) and not start.startswith(ZIP_START):
            raise FileFormatError(
                shard, "a file of safetensors or a zip file of PyTorch, as part of an index", "another"
            )
        tensors = load(shard, frozenset(some))
        if len(tensors) < len(some):
            missing = next(name for name in some if name not in tensors)
            raise FileFormatError(path, f"a tensor {missing!r} in {file[:100]}", "none")
        found |= tensors
    return {name: found[name] for name in order}


def _weight_map(path: str) -> dict[str, str]:
    """Return the file of each tensor."""
    with open(path, "rb") as f:
        data = f.read(MAX_HEADER_BYTES + 1)
    if len(data) > MAX_HEADER_BYTES:
        raise FileFormatError(path, f"an index of at most {MAX_HEADER_BYTES} bytes", "more")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(path, "an index in UTF-8", str(error)) from None
    index = parse_json(text, path, "the index")
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict):
        raise FileFormatError(path, "a JSON object with a weight_map", kind_of(index))
    for name, file in files.items():
        if not isinstance(file, str) or not _is_file_name(file):
            raise FileFormatError(path, f"the name of a file next to the index for {name!r}", repr(file)[:100])
        if file.endswith(".index.json"):
            raise FileFormatError(path, f"the name of a file of tensors for {name!r}", "that of an index")
    return files


def _is_file_name(name: str) -> bool:
    """Return whether a name is that of a file in the same folder, of a length and of characters that names can have."""
    if os.path.basename(name) != name or "\\" in name or "\0" in name or name in ("", ".", ".."):
        return False
    try:
        return len(os.fsencode(name)) <= 255
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can express
        return False
