"""Padding: values around the last dims of a tensor."""

from __future__ import annotations

from candelabra.dtypes import int64
from candelabra.library import by, float32_on_host, operator, record, shape_of
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Sequence, Tensor

index_select, cat, new_arange = record("index_select"), record("cat"), record("new_arange")
constant_pad_nd = record("constant_pad_nd")

Ints = tuple[int, ...]
RANKS = ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5))
"""The numbers of sizes and of dims that modes other than "constant" take, as in PyTorch."""
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
    if mode != "constant":
        if value is not None:
            raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
        if (len(pad), input.ndim) not in RANKS:
            raise NotImplementedError(
                f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
                "Supported combinations for non-constant padding:\n"
                "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
                "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
            )
    if mode == "replicate" or (mode == "reflect" and len(pad) < 6):  # PyTorch's list lacks reflected volumes
        input = float32_on_host(input)
    if mode != "constant" and any(pad) and input.numel():
        return pad_around(input, tuple(pad), mode)
    padded: Tensor = constant_pad_nd(input, tuple(pad), value or 0)
    return padded


# -- values of the tensor itself --------------------------------------------------------------------------------------
@operator(by(_padded_shape), method=False, public=False, out=False)
def pad_around(input: Tensor, pad: Ints, mode: str) -> Tensor:
    """:func:`pad` with a mode that takes the values from the input."""
    out = input
    for dim, before, after in _padded_dims(pad, input.ndim):
        out = (_selected if min(before, after) < 0 else _with_edges)(out, dim, before, after, mode)
    return out


def _unpadded_shape(grad: Tensor, shape: Ints, pad: Ints, mode: str) -> Ints:
    return shape


@operator(by(_unpadded_shape), accepts="floating", method=False, public=False, out=False)
def pad_around_adjoint(grad: Tensor, shape: Ints, pad: Ints, mode: str) -> Tensor:
    """The adjoint of :func:`pad_around`, of the given ``shape``: adds elements to those that they were taken from."""
    out = grad
    for dim, before, after in reversed(_padded_dims(pad, grad.ndim)):
        if min(before, after) < 0:
            zeros = out.new_zeros((*out.shape[:dim], shape[dim], *out.shape[dim + 1 :]))
            out = zeros.index_add(dim, _positions(out, shape[dim], before, after, mode), out)
            continue
        whole, size = out, shape[dim]
        out = whole.narrow(dim, before, size).clone()
        for edge, (start, length) in zip(((0, before), (before + size, after)), _sources(size, before, after, mode)):
            if edge[1]:
                out.narrow(dim, start, length).add_(_folded(whole.narrow(dim, *edge), dim, mode))
    return out


pad_around.vjp(input=lambda g, input_spec, pad, mode: pad_around_adjoint(g, input_spec.shape, pad, mode))
pad_around_adjoint.vjp(grad=lambda g, pad, mode: pad_around(g, pad, mode))


def _sources(size: int, before: int, after: int, mode: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (start, length) of the elements of a dim that the values before it are taken from, and those after it."""
    if mode == "reflect":
        return (1, before), (size - 1 - after, after)
    if mode == "replicate":
        return (0, 1), (size - 1, 1)
    return (size - before, before), (0, after)


def _with_edges(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """Pad one dim by sizes that are not negative."""
    pieces = [x]
    for position, size, source in zip((0, 2), (before, after), _sources(x.shape[dim], before, after, mode)):
        if not size:
            continue
        edge = x.narrow(dim, *source)
        if mode == "reflect":
            edge = edge.flip((dim,))
        elif mode == "replicate":
            edge = edge.expand((*x.shape[:dim], size, *x.shape[dim + 1 :]))
        pieces.insert(position, edge)
    out: Tensor = cat(pieces, dim)
    return out


def _folded(edge: Tensor, dim: int, mode: str) -> Tensor:
    """Return what the gradients of the values beyond an edge add to the elements that they were taken from."""
    if mode == "reflect":
        return edge.flip((dim,))
    return edge.sum(dim, True) if mode == "replicate" else edge


def _selected(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """Pad one dim by sizes of which one is negative: that side loses elements."""
    out: Tensor = index_select(x, dim, _positions(x, x.shape[dim], before, after, mode))
    return out


def _positions(like: Tensor, size: int, before: int, after: int, mode: str) -> Tensor:
    """Return where the elements of a padded dim are taken from."""
    count = size + before + after
    if mode == "circular":
        # Elements are removed before anything wraps around; the other modes read the whole input.
        removed, kept = max(-before, 0), size + min(before, 0) + min(after, 0)
        wrapped: Tensor = new_arange(like, -max(before, 0), 1, count, dtype=int64) % kept + removed
        return wrapped
    last = size - 1
    positions: Any = new_arange(like, -before, 1, count, dtype=int64)
    if mode == "reflect":
        positions = last - (last - positions.abs()).abs()
    else:
        positions = positions.clamp(0, last)
    found: Tensor = positions
    return found
