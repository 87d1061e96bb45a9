"""Views by NumPy's own methods, where those are faster than re-striding."""

from __future__ import annotations

from typing import Any

import numpy as np


def basic_index(x: Any, index: tuple[Any, ...]) -> Any:
    return x[*index, ...]


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    return x.swapaxes(dim0, dim1) if x.ndim else x.view()


def permute(x: Any, dims: tuple[int, ...]) -> Any:
    return x.transpose(dims)


def expand(x: Any, size: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, size, subok=False) if x.shape != size else x.view()


def alias(x: Any) -> Any:
    return x.view()


KERNELS: dict[str, Any] = {
    "basic_index": basic_index, "transpose": transpose, "permute": permute, "alias": alias, "detach": alias,
}  # fmt: skip
