"""Padding: values around the last dims of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import Tensor, full
from candelabra.library import public_function, record

index_select = record("index_select")
cat = record("cat")

__all__ = ["pad"]


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Values before and after the last dims: ``pad`` = (before, after) of the last, then of the one before it, …

    ``mode``: "constant" (``value``, 0 unless given; a negative size cuts off), "reflect" (without the edge),
    "replicate" (the edge), "circular". Raises ``RuntimeError`` and ``ValueError`` for sizes that don't fit.
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    if mode not in ("constant", *_PLACES):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode != "constant" and value is not None:
        raise ValueError(f"Padding mode '{mode}' doesn't take in value argument")
    out = input
    for number in range(len(pad) // 2):
        before, after = pad[2 * number], pad[2 * number + 1]
        if (before, after) == (0, 0):
            continue
        dim = input.ndim - 1 - number
        out = (
            _constant(out, dim, before, after, value or 0)
            if mode == "constant"
            else _taken(out, dim, before, after, mode)
        )
    return out.clone() if out is input else out  # type: ignore[no-any-return]


def _constant(x: Any, dim: int, before: int, after: int, value: float) -> Any:
    size = x.shape[dim] + before + after
    if size < 0:
        raise RuntimeError(
            f"The input size {x.shape[dim]}, plus negative padding {before} and {after} resulted in a negative output "
            f"size, which is invalid. Check dimension {dim} of your input."
        )
    first = max(0, -before)
    kept = max(0, x.shape[dim] - first - max(0, -after))
    parts = [x.narrow(dim, first if kept else 0, kept)]
    for width, place in ((before, 0), (after, 1)):
        if width > 0:
            shape = (*x.shape[:dim], width, *x.shape[dim + 1 :])
            parts.insert(place * len(parts), full(shape, value, dtype=x.dtype, device=x.device))
    return cat(parts, dim) if len(parts) > 1 else parts[0]


def _reflected(i: int, n: int) -> int:
    return -i if i < 0 else 2 * (n - 1) - i if i >= n else i


def _replicated(i: int, n: int) -> int:
    return min(max(i, 0), n - 1)


def _wrapped(i: int, n: int) -> int:
    return i % n


_PLACES = {"reflect": _reflected, "replicate": _replicated, "circular": _wrapped}
"""Where each place outside of 0 … n - 1 takes its value from."""


def _taken(x: Any, dim: int, before: int, after: int, mode: str) -> Any:
    size = x.shape[dim]
    if mode == "reflect" and max(before, after) >= size:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(x.shape)}"
        )
    if mode == "circular" and max(before, after) > size:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if size == 0:
        raise RuntimeError(f"Expected dimension {dim} of the input to be non-zero for padding, but got {list(x.shape)}")
    if mode == "circular" and min(before, after) < 0:
        # What is cut off is gone before anything wraps around; the other modes look at the whole input.
        x = _constant(x, dim, min(before, 0), min(after, 0), 0)
        before, after, size = max(before, 0), max(after, 0), x.shape[dim]
        if size == 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension.")
    places = [_PLACES[mode](i, size) for i in range(-before, size + after)]
    return index_select(x, dim, public_function("tensor")(places, device=x.device))


def __dir__() -> list[str]:
    return sorted(__all__)
