"""Distances between points: of all pairs (``cdist``, ``pdist``) and of corresponding rows; and angles between
vectors.
"""

from __future__ import annotations

from math import inf

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes, reduced_shape, wrap_dim
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.linalg.norms import linalg_vector_norm, norm_of_order
from candelabra._operators.linalg.products.matmul import matmul
from candelabra._operators.shapes.joining import cat
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING, dtype, finfo, int64

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]
MANY = 25
"""The number of points above which Euclidean distances are computed by one matrix product, unless the caller forbids
it."""
MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


# -- all pairs --------------------------------------------------------------------------------------------------------
@by
def _pair_shape(x1: Tensor, x2: Tensor, *_: Any) -> Ints:
    a, b = shape_of(x1), shape_of(x2)
    return (*broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-2])


def _lengths(d: Tensor, p: float) -> Tensor:
    """Return the p-norms of the vectors along the last dim."""
    d = d.abs()
    if not d.shape[-1]:
        return d.sum(-1)
    if p == 0:
        return (d != 0).sum(-1).to(d.dtype)
    if p == 1:
        return d.sum(-1)
    if p == 2:
        return (d * d).sum(-1).sqrt()
    return d.amax(-1) if p == inf else (d**p).sum(-1) ** (1 / p)


@operator(_pair_shape, accepts="real floating", public=False)
def distances(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    """Return the p-norms of all differences of a row of ``x1`` and a row of ``x2``: (…, n, m) from (…, n, k) and (…, m,
    k).
    """
    return _lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@operator(by(lambda g, x1, *_: (*shape_of(g)[:-1], shape_of(x1)[-1])), accepts="real floating", public=False)
def distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, out: Tensor, p: float) -> Tensor:
    """Return the gradient of :func:`distances` for ``x1``: sums over the rows of ``x2``; 0 where two points are
    equal.
    """
    # d |d|_p / d d_k = sgn(d_k) |d_k|^(p-1) / |d|_p^(p-1); of the maximum, the sign where |d_k| attains it.
    d = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 0 or not d.shape[-1]:
        return (d * 0).sum(-2)
    g, length = grad.unsqueeze(-1), out.unsqueeze(-1)
    if p == 1:
        return (g * d.sgn()).sum(-2)
    if p == inf:
        return (g * d.sgn() * (d.abs() == length)).sum(-2)
    meets = length == 0
    if p == 2:
        return (g * d / length.masked_fill(meets, 1)).sum(-2)
    size = d.abs()
    flat = size == 0
    slope = d.sgn() * size.masked_fill(flat, 1) ** (p - 1) / length.masked_fill(meets, 1) ** (p - 1)
    return (g * slope).sum(-2)


distances.vjp(
    x1=lambda g, x1, x2, out, p: distances_backward(g, x1, x2, out, p),
    x2=lambda g, x1, x2, out, p: distances_backward(g.mT, x2, x1, out.mT, p),
)


@operator(_pair_shape, accepts="real floating", public=False)
def euclidean_distances(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the Euclidean distances of all pairs of rows, by one matrix product: ``|a - b|^2 = |a|^2 - 2ab +
    |b|^2``.
    """
    first, second = (x1 * x1).sum(-1, True), (x2 * x2).sum(-1, True)
    one, other = new_full(x1, tuple(first.shape), 1), new_full(x1, tuple(second.shape), 1)
    left, right = cat((x1 * -2, first, one), -1), cat((x2, other, second), -1)
    return matmul(left, right.mT).clamp_min(0).sqrt()


def _euclidean_back(g: Tensor, x1: Tensor, x2: Tensor, out: Tensor) -> Tensor:
    ratio = (g / out).masked_fill(out == 0, 0)
    return x1 * ratio.sum(-1, True) - matmul(ratio, x2)


euclidean_distances.vjp(
    x1=lambda g, x1, x2, out: _euclidean_back(g, x1, x2, out),
    x2=lambda g, x1, x2, out: _euclidean_back(g.mT, x2, x1, out.mT),
)


@by
def _cdist_shape(x1: Tensor, x2: Tensor, p: float, compute_mode: str) -> Ints:
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    a, b = shape_of(x1), shape_of(x2)
    for name, x, shape in (("X1", x1, a), ("X2", x2, b)):
        if len(shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(shape)}D")
        if x.dtype.category != FLOATING:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.title}")
    if a[-1] != b[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return (*broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-2])


@operator(_cdist_shape, promote=unpromoted, method=False, out=False, autocast="float32")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Return the distances in the p-norm of every row of ``x1`` to every row of ``x2``.

    Shapes (…, n, k) and (…, m, k) give (…, n, m); batch dims broadcast. ``compute_mode`` selects whether Euclidean
    distances are computed by a matrix product, which is faster but less accurate for points that are close: by default,
    if ``x1`` or ``x2`` has more than 25 points. Raises ``RuntimeError`` for dtypes that are not floating, negative
    ``p`` and sizes that differ.
    """
    _cdist_shape(cdist, (x1, x2, p, compute_mode))
    mode = MODES[compute_mode]
    if p == 2 and (mode or (mode is None and max(x1.shape[-2], x2.shape[-2]) > MANY)):
        return euclidean_distances(x1, x2)
    return distances(x1, x2, p)


def _floating_points(d: dtype) -> dtype:
    if d.category != FLOATING:
        raise RuntimeError("pdist only supports floating-point dtypes")
    return d


@by
def _pdist_shape(input: Tensor, p: float) -> tuple[int]:
    shape = shape_of(input)
    if len(shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(shape)}D")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return (shape[0] * (shape[0] - 1) // 2,)


@operator(_pdist_shape, promote=_floating_points, method=False, autocast=Autocast("float32"))
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances in the p-norm of all pairs of rows of an (n, k) tensor: n(n-1)/2 elements, row by row.

    Raises ``RuntimeError`` unless the tensor is 2-d and of a floating dtype, and for negative ``p``.
    """
    _pdist_shape(pdist, (input, p))
    n = input.shape[0]
    return distances(input, input, p).reshape((n * n,)).index_select(0, _later_pairs(input))


def _later_pairs(input: Tensor) -> Tensor:
    """Return the places of all pairs of a row and a later row in the flattened matrix of pairs."""
    n = input.shape[0]
    count = n * (n - 1) // 2
    # Pair t of points i < j stands at i n + j = t + (i + 1) (i + 2) / 2 of the matrix: row i is i + 1 places later than
    # row i - 1.
    row = new_arange(input, 1, 1, max(n - 2, 0), dtype=int64)
    begins = row * n - row * (row + 1) // 2
    later = new_full(input, (count,), 0, dtype=int64).index_add(0, begins, row + 1).cumsum(0)
    return new_arange(input, 1, 1, count, dtype=int64) + later


@operator(by(lambda grad, input, *_: shape_of(input)), accepts="real floating", public=False)
def pdist_backward(grad: Tensor, input: Tensor, out: Tensor, p: float) -> Tensor:
    """Return the gradient of :func:`pdist`: for each row, a sum over all other rows. A pair counts for both of its
    rows, so the matrix of pairs is symmetric.
    """
    n = input.shape[0]
    places = _later_pairs(input)

    def symmetric(values: Tensor) -> Tensor:
        upper = new_full(values, (n * n,), 0).index_copy(0, places, values).reshape((n, n))
        return upper + upper.mT

    if p == 2:  # the slopes do not depend on the coordinate, so the distances are not needed as a matrix
        slopes = symmetric(grad / out.masked_fill(out == 0, 1))
        return distances_backward(slopes, input, input, new_full(grad, (1, 1), 1).expand((n, n)), p)
    return distances_backward(symmetric(grad), input, input, symmetric(out), p)


pdist.vjp(input=lambda g, input, out, p: pdist_backward(g, input, out, p))


# -- corresponding rows ------------------------------------------------------------------------------------------------
@by
def _pairwise_shape(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Ints:
    shape = broadcast_shapes(shape_of(x1), shape_of(x2))
    return reduced_shape(shape, (len(shape) - 1,) if shape else None, keepdim)


@operator(_pairwise_shape, method=False, out=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norms of ``x1 - x2 + eps`` along the last dim; the two broadcast.

    ``eps`` prevents a distance of 0, where the derivative is undefined.
    """
    return norm_of_order(x1 - x2 + eps, p, -1, keepdim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """Return ``x`` divided by its length along ``dim``, or by ``eps`` if that is larger."""
    if eps > 0:  # 1e-8 is 0 in float16
        eps = max(eps, finfo(x.dtype).tiny)
    return x / linalg_vector_norm(x, 2, (dim,), True).clamp_min(eps)


@by
def _cosine_shape(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Ints:
    shape = broadcast_shapes(shape_of(x1), shape_of(x2))
    return reduced_shape(shape, (wrap_dim(dim, len(shape)),), False)


@operator(_cosine_shape, promote=to_float, accepts="real", method=False, autocast=Autocast("float32"))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along ``dim`` (of the broadcast shape): dot product by both
    lengths.

    Lengths below ``eps`` are replaced by ``eps``, which is at least the smallest normal number of the dtype.
    """
    rank = max(len(shape_of(x1)), len(shape_of(x2)))
    dim = wrap_dim(dim, rank) - rank if rank else 0
    shape = broadcast_shapes(shape_of(x1), shape_of(x2))
    x1, x2 = x1.expand(shape), x2.expand(shape)
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)
