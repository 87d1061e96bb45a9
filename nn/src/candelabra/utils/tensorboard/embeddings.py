"""The files of TensorBoard's projector: vectors, their labels and pictures, and the list of both."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from candelabra.typing import Any
from candelabra.utils.tensorboard.summaries import as_array

from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

CONFIGURATION = "projector_config.pbtxt"
SPRITE_LIMIT = 8192
"""The largest height and width of a sprite, in pixels, that TensorBoard shows."""


def write(folder: Path, name: str, tag: str, vectors: Any, labels: Any, header: Any, pictures: Any) -> None:
    """Write vectors (n, features) with n labels and n pictures (n, channels, height, width) into ``folder / name``.

    ``labels`` are strings, or with ``header`` rows of several columns. The list of embeddings in ``folder`` gets an
    entry. Raises ``ValueError`` for another number of labels or pictures, and for pictures that are too large.
    """
    table = as_array(vectors)
    if table.ndim != 2:
        raise ValueError(f"mat should be 2D, where mat.size(0) is the number of data points, got {list(table.shape)}")
    (folder / name).mkdir(parents=True, exist_ok=True)
    config = ProjectorConfig()
    entry = config.embeddings.add(tensor_name=f"{tag}:{name}", tensor_path=f"{name}/tensors.tsv")
    if labels is not None:
        if len(labels) != len(table):
            raise ValueError(f"#labels should equal with #data points, got {len(labels)} and {len(table)}")
        (folder / name / "metadata.tsv").write_text(_lines(labels, header), encoding="utf-8")
        entry.metadata_path = f"{name}/metadata.tsv"
    if pictures is not None:
        images = as_array(pictures)
        if len(images) != len(table):
            raise ValueError(f"#images should equal with #data points, got {len(images)} and {len(table)}")
        _sprite(images).save(folder / name / "sprite.png")
        entry.sprite.image_path = f"{name}/sprite.png"
        entry.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
    rows = ("\t".join(map(repr, row)) for row in table.tolist())
    (folder / name / "tensors.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    _extend(folder / CONFIGURATION, config)


def _lines(labels: Any, header: Any) -> str:
    if header:
        return "".join("\t".join(map(str, row)) + "\n" for row in (header, *labels))
    return "".join(f"{as_array(label).item() if hasattr(label, 'item') else label}\n" for label in labels)


def _sprite(images: Any) -> Any:
    """Return pictures of numbers from 0 to 1 (n, channels, height, width) in a square grid, as an image of Pillow."""
    from PIL import Image

    count, _, height, width = images.shape
    side = math.ceil(math.sqrt(count))
    if side * max(height, width) > SPRITE_LIMIT:
        raise ValueError(
            f"{count} pictures of {height}x{width} pixels take more than {SPRITE_LIMIT} pixels in a square; make the "
            "pictures smaller"
        )
    grid = np.zeros((side * height, side * width, 3), "u1")
    pixels = np.clip(images * 255, 0, 255).astype("u1").transpose(0, 2, 3, 1)
    for index, picture in enumerate(pixels):
        row, column = divmod(index, side)
        grid[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return Image.fromarray(grid)


def _extend(path: Path, config: Any) -> None:
    """Add entries to the list of embeddings; an entry of the same name is replaced."""
    from google.protobuf import text_format

    whole = ProjectorConfig()
    if path.exists():
        text_format.Parse(path.read_text(encoding="utf-8"), whole)
    kept = [e for e in whole.embeddings if all(e.tensor_name != new.tensor_name for new in config.embeddings)]
    del whole.embeddings[:]
    whole.embeddings.extend([*kept, *config.embeddings])
    path.write_text(text_format.MessageToString(whole), encoding="utf-8")


__all__ = ["write"]


def __dir__() -> list[str]:
    return sorted(__all__)
