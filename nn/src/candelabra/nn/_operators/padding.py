"""Padding: values around the last dims of a tensor."""

from __future__ import annotations

from candelabra.dtypes import int64
from candelabra.library import by, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Sequence, Tensor

index_select, cat, new_arange = record("index_select"), record("cat"), record("new_arange")

MODES = ("constant", "reflect", "replicate", "circular")


def _padded_shape(input: Tensor, pad: Sequence[int], mode: str = "constant", *_: Any) -> tuple[int, ...]:
    """Return the shape of the padded tensor. Raises ``RuntimeError`` for sizes that do not fit."""
    shape = list(shape_of(input))
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {len(shape)}"
        )
    for dim, before, after in _padded_dims(pad, len(shape)):
        size = shape[dim]
        if mode != "constant":
            _check_source(shape, dim, before, after, mode)
        shape[dim] += before + after
        if shape[dim] < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after} resulted in a negative output "
                f"size, which is invalid. Check dimension {dim} of your input."
            )
    return tuple(shape)


def _padded_dims(pad: Sequence[int], rank: int) -> list[tuple[int, int, int]]:
    """Return (dim, size before, size after) of each dim that changes, the last dim first."""
    sizes = [(rank - 1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    return [(dim, before, after) for dim, before, after in sizes if (before, after) != (0, 0)]


def _check_source(shape: Sequence[int], dim: int, before: int, after: int, mode: str) -> None:
    """Raise ``RuntimeError`` if a dim is too small to take values from."""
    size = shape[dim]
    if mode == "reflect" and max(before, after) >= size:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(shape)}"
        )
    if mode == "circular" and max(before, after) > size:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if size == 0:
        raise RuntimeError(f"Expected dimension {dim} of the input to be non-zero for padding, but got {list(shape)}")
    if mode == "circular" and min(before, after) < 0 and size + min(before, 0) + min(after, 0) <= 0:
        raise RuntimeError("Negative padding value is resulting in an empty dimension.")


@operator(by(_padded_shape), out=False, namespace="nn.functional")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dims: ``pad`` = (before, after) of the last dim, then of the one before it, …

    ``mode``: "constant" (``value``, by default 0; a negative size removes elements), "reflect" (without the edge),
    "replicate" (the edge), "circular". Raises ``RuntimeError`` and ``ValueError`` for sizes that do not fit.
    """
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _padded_shape(input, pad, mode)
    if mode != "constant" and value is not None:
        raise ValueError(f"Padding mode '{mode}' doesn't take in value argument")
    out = input
    for dim, before, after in _padded_dims(pad, input.ndim):
        if mode == "constant":
            out = _constant(out, dim, before, after, value or 0)
        else:
            out = _from_source(out, dim, before, after, mode)
    return out.clone() if out is input else out


def _constant(x: Tensor, dim: int, before: int, after: int, value: float) -> Tensor:
    """Pad one dim with a value; negative sizes remove elements."""
    start = max(0, -before)
    kept = max(0, x.shape[dim] - start - max(0, -after))
    pieces = [x.narrow(dim, start if kept else 0, kept)]
    for size, position in ((before, 0), (after, 1)):
        if size > 0:
            shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
            pieces.insert(position * len(pieces), x.new_full(shape, value))
    return cat(pieces, dim) if len(pieces) > 1 else pieces[0]


def _from_source(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """Pad one dim with the tensor's own values."""
    if mode == "circular" and min(before, after) < 0:
        # Elements are removed before anything wraps around; the other modes read the whole input.
        x = _constant(x, dim, min(before, 0), min(after, 0), 0)
        before, after = max(before, 0), max(after, 0)
    last = x.shape[dim] - 1
    positions: Any = new_arange(x, -before, 1, before + last + 1 + after, dtype=int64)
    if mode == "reflect":
        positions = last - (last - positions.abs()).abs()
    elif mode == "replicate":
        positions = positions.clamp(0, last)
    else:
        positions = positions % (last + 1)
    return index_select(x, dim, positions)
