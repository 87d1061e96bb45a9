"""Products of vectors and matrices that have names in linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from candelabra._annotations import TYPE_CHECKING
from candelabra._codegen.arguments import kind_of, wrap_dim
from candelabra._dispatch.promote import title
from candelabra._layout import broadcast_shapes
from candelabra._operators.elementwise.complex import conj
from candelabra._operators.families.chains import chained
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.primitives.reductions import matmul as product
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@public(namespace="linalg")
@takes_tensors("linalg_matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product: another name of ``candelabra.matmul``."""
    return delivered("linalg.matmul", product(input, other), out)


@public(namespace="linalg")
@takes_tensors("linalg_diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of matrices in the last two dims: ``candelabra.diagonal`` with other defaults."""
    return A.diagonal(offset, dim1, dim2)


@by
def _cross_shape(input: Tensor, other: Tensor, dim: int) -> tuple[int, ...]:
    a, b = shape_of(input), shape_of(other)
    if len(a) != len(b):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    place = wrap_dim(dim, len(a))
    if a[place] != 3 or b[place] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a[place]} and {b[place]}")
    return broadcast_shapes(a, b)


@operator(_cross_shape, accepts="numeric", namespace="linalg")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors along ``dim``, which has size 3; the other dims broadcast."""
    _cross_shape(linalg_cross, (input, other, dim))
    x = [input.narrow(dim, i, 1) for i in range(3)]
    y = [other.narrow(dim, i, 1) for i in range(3)]
    return cat([x[i - 2] * y[i - 1] - x[i - 1] * y[i - 2] for i in range(3)], dim)


@by
def _vecdot_shape(x: Tensor, y: Tensor, dim: int) -> tuple[int, ...]:
    shape = broadcast_shapes(shape_of(x), shape_of(y))
    place = wrap_dim(dim, len(shape))
    return (*shape[:place], *shape[place + 1 :])


@operator(_vecdot_shape, namespace="linalg")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """``sum(conj(x) * y)`` along ``dim``; the tensors broadcast."""
    return (conj(x) * y).sum(dim, dtype=x.dtype)


@public(namespace="linalg")
@takes_tensors("linalg_vander")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of the elements of (…, n): Vandermonde's matrices, (…, n, N). ``N`` is n by default.

    Integers give int64.
    """
    if x.dtype.category == BOOL:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {title(x.dtype)}"
        )
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    if not x.dtype.is_floating_point and not x.is_complex():
        x = x.long()
    column = x.unsqueeze(-1)
    powers = [column.new_ones(column.shape), column]
    while len(powers) < count:
        powers.append(powers[-1] * column)
    return cat(powers, -1)


# -- a chain of products ----------------------------------------------------------------------------------------------
@public(namespace="linalg")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors: a row and a column. Cormen, Leiserson, Rivest and Stein, Introduction to
    Algorithms, 15.2.
    """
    chain = list(tensors)
    for i, t in enumerate(chain):
        if not hasattr(t, "_payload"):
            raise TypeError(f"linalg_multi_dot(): expected Tensor as element {i} in argument 0, but got {kind_of(t)}")
    if len(chain) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(chain)}")
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    _check_chain(chain)
    if row:
        chain[0] = chain[0].unsqueeze(0)
    if column:
        chain[-1] = chain[-1].unsqueeze(-1)
    for i, (a, b) in enumerate(pairwise(chain)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    found = chained(chain, product)
    if row:
        found = found.squeeze(0)
    return delivered("linalg.multi_dot", found.squeeze(-1) if column else found, out)


def _check_chain(chain: list[Tensor]) -> None:
    last = len(chain) - 1
    for i, t in enumerate(chain):
        if t.ndim != 2 and (i not in (0, last) or t.ndim != 1):
            kind = "1D or 2D" if i in (0, last) else "2D"
            which = {0: "the first tensor", last: "the last tensor"}.get(i, f"tensor {i}")
            raise RuntimeError(f"multi_dot(): {which} must be {kind} but got {t.ndim}D")
        if t.dtype is not chain[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {chain[0].dtype.name} and "
                f"tensor {i} {t.dtype.name}"
            )
