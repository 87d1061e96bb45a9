"""Windows of fixed size along a dim, as a view, and their adjoint."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Geometry, Ints
from candelabra._operators.creation.filled import new_full
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.permuting import permute
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow, select
from candelabra._records.record import operator
from candelabra._records.rules import from_geometry

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor


def _windows_shape(shape: Ints, dimension: int, size: int, step: int) -> Ints:
    """Return the shape of the windows: their number replaces the size of the dim, and their size is the last dim."""
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if not shape:
        if size > 1:
            raise RuntimeError(f"maximum size for tensor at dimension 0 is 1 but size is {size}")
        return (size,)
    if size > shape[dimension]:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {shape[dimension]} but size is {size}")
    count = (shape[dimension] - size) // step + 1
    return (*shape[:dimension], count, *shape[dimension + 1 :], size)


def _windows_geometry(shape: Ints, strides: Ints, offset: int, dimension: int, size: int, step: int) -> Geometry:
    result = _windows_shape(shape, dimension, size, step)
    if not shape:
        return result, (1,), offset
    steps = (*strides[:dimension], strides[dimension] * step, *strides[dimension + 1 :], strides[dimension])
    return result, steps, offset


@operator(from_geometry, view=_windows_geometry)
def unfold(input: Tensor, dimension: Dim, size: int, step: int) -> Tensor:
    """Return a view of windows of ``size`` along ``dimension`` at a distance of ``step``, as a new last dim."""
    ...


def overlap_add(x: Tensor, shape: Ints, dim: int, step: int) -> Tensor:
    """Return the sum of windows (the last dim of ``x``) at a distance of ``step`` along ``dim``: the adjoint of
    ``unfold``.
    """
    # A window of k * step elements is k blocks. Block j of all windows is one row of blocks, shifted by j blocks.
    last = x.ndim - 1
    x = permute(x, (*[d for d in range(last) if d != dim], dim, last))
    *lead, count, size = x.shape
    k = -(-size // step)
    if k * step != size:
        x = cat((x, _zeros(x, last, k * step - size)), last)
    blocks = reshape(x, (*lead, count, k, step))
    out: Any = None
    for j in range(k):
        block = select(blocks, last, j)
        moved = [_zeros(block, last - 1, j), block, _zeros(block, last - 1, k - 1 - j)]
        block = cat([p for p in moved if p.shape[last - 1]], last - 1) if k > 1 else block
        out = block if out is None else out + block
    out = reshape(out, (*lead, (count + k - 1) * step))
    missing = shape[dim] - out.shape[-1]
    if missing <= 0:
        out = narrow(out, last - 1, 0, shape[dim])
    else:
        out = cat((out, _zeros(out, last - 1, missing)), last - 1)
    order = [*range(last - 1)]
    order.insert(dim, last - 1)
    return permute(out, tuple(order))


def _zeros(like: Tensor, dim: int, size: int) -> Tensor:
    """Return zeros in the shape of a tensor, with another size of one dim."""
    return new_full(like, tuple([size if d == dim else s for d, s in enumerate(like.shape)]), 0)


def _unfold_adjoint(g: Tensor, input_spec: Any, dimension: int, size: int, step: int) -> Tensor:
    if not input_spec.shape or 0 in g.shape:  # a 0-d tensor has at most one window
        return g.sum().expand(input_spec.shape)
    return overlap_add(g, input_spec.shape, dimension, step)


unfold.vjp(input=_unfold_adjoint)
