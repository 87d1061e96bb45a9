"""Several values for one place: ``scatter_reduce`` and ``index_reduce``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._dispatch.promote import title
from candelabra._layout import wrap_dim
from candelabra._operators.elementwise import selection
from candelabra._operators.indexing.basic import basic_index
from candelabra._operators.primitives import creation, indexing
from candelabra._operators.primitives.creation import zeroed
from candelabra._operators.shapes.reshaping import reshape
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._tensor import Tensor
from candelabra.dtypes import BOOL, COMPLEX, INTEGER, PYTHON_NAMES, int64

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


# -- the primitive: products and extremes -----------------------------------------------------------------------------
@operator(indexing._scattered, inplace=True, method=False, public=False)
def scatter_extreme(input: Tensor, dim: Dim, index: Index, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """``input`` with the product (``"prod"``) or an extreme (``"amax"``, ``"amin"``) of what ``src`` brings to a place.

    ``src`` has the sizes of ``index``. With ``include_self`` what is there takes part, else it is forgotten where an
    index points to. NaN wins over any extreme.
    """
    ...


def _extreme_back(
    g: Tensor,
    input: Tensor,
    src: Tensor,
    out: Tensor,
    dim: int,
    index: Tensor,
    reduce: str,
    include_self: bool,
    needs: tuple[bool, bool],
) -> tuple[Tensor | None, Tensor | None]:
    if reduce == "prod":
        return _product_back(g, input, src, out, dim, index, include_self, needs)
    # All that reach the extreme share its gradient evenly, as in amax over a dim.
    chosen = (src == indexing.gather(out, dim, index)).to(g.dtype)
    own = (input == out).to(g.dtype) if include_self else _forgotten((input == out).to(g.dtype), dim, index)
    share = g / indexing.scatter_add(own, dim, index, chosen).clamp_min(1)
    return own * share if needs[0] else None, chosen * indexing.gather(share, dim, index) if needs[1] else None


def _product_back(
    g: Tensor,
    input: Tensor,
    src: Tensor,
    out: Tensor,
    dim: int,
    index: Tensor,
    include_self: bool,
    needs: tuple[bool, bool],
) -> tuple[Tensor | None, Tensor | None]:
    """``out / x`` for each factor x; where x is the only zero of its place, the product of the others."""
    to_input = to_src = None
    if needs[0]:
        others = scatter_extreme(_ones(input), dim, index, src, "prod", True)
        to_input = g * others.conj()
        if not include_self:
            to_input = _forgotten(to_input, dim, index)
    if needs[1]:
        zero = src == 0
        zeros = indexing.scatter_add(zeroed(input), dim, index, zero.to(input.dtype))
        only = zero & (indexing.gather(zeros, dim, index) == 1)
        others = scatter_extreme(input, dim, index, src.masked_fill(only, 1), "prod", include_self)
        at_zero = indexing.gather(g * others.conj(), dim, index)
        elsewhere = indexing.gather(g * out.conj(), dim, index) / src.masked_fill(zero, 1).conj()
        to_src = selection.where(only, at_zero, elsewhere)
    return to_input, to_src


def _ones(like: Tensor) -> Tensor:
    out: Tensor = creation.full(tuple(like.shape), 1, dtype=like.dtype, device=like.device)
    return out


def _forgotten(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """``x`` with zeros where an index points to."""
    out: Tensor = indexing.scatter_src(x, dim, index, zeroed(indexing.gather(x, dim, index)))
    return out


scatter_extreme.vjp(("input", "src"), _extreme_back)


# -- scatter_reduce ---------------------------------------------------------------------------------------------------
def _reduced(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """``scatter_reduce`` of checked arguments, ``src`` no larger than ``index``."""
    if reduce in ("prod", "amax", "amin"):
        return scatter_extreme.function(input, dim, index, src, reduce, include_self)
    start = input if include_self else _forgotten(input, dim, index)
    total: Tensor = indexing.scatter_add.function(start, dim, index, src)
    if reduce == "sum":
        return total
    real = src.dtype.to_real()
    ones = creation.full.function(tuple(src.shape), 1, dtype=real, device=src._instance)
    own = creation.full.function(tuple(input.shape), int(include_self), dtype=real, device=src._instance)
    count = indexing.scatter_add.function(own, dim, index, ones).clamp_min(1)
    whole = total.dtype.category == INTEGER
    return total.div(count, rounding_mode="floor") if whole else total / count


def _checked(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> tuple[int, Tensor]:
    """The canonical dim, and ``src`` cut to the sizes of ``index``."""
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_reduce(): argument 'src' (position 3) must be Tensor, not {kind_of(src)}")
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    category = input.dtype.category
    if (category == COMPLEX and reduce in ("amax", "amin")) or (category == BOOL and reduce == "mean"):
        kind = PYTHON_NAMES[input.dtype.name]
        raise NotImplementedError(f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{kind}'")
    d = wrap_dim(dim, input.ndim)
    if src.ndim == index.ndim and src.shape != index.shape:
        indexing._scattered(indexing.scatter_src, (input, d, index, src))  # raises where the source is smaller
        src = basic_index(src, tuple(slice(0, size, 1) for size in index.shape))
    return d, src


def _kept(input: Tensor, src: Tensor) -> Tensor:
    """The values that are about to be written over, in a copy where derivatives ask for them."""
    return creation.clone.function(input) if input.requires_grad or src.requires_grad else input


@public(out="exact")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``input`` with what ``src`` brings along ``dim`` reduced where ``index`` says: sum, prod, mean, amax or amin.

    ``include_self=False`` leaves the old values out where an index points to. Means of integers round down. Raises
    ``RuntimeError`` for another ``reduce``, unequal dtypes and indices out of bounds, ``NotImplementedError`` for
    extremes of complex numbers and means of bools.
    """
    d, src = _checked(input, dim, index, src, reduce)
    return _reduced(input, d, index, src, reduce, include_self)


@public(is_function=False)
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place form of :func:`scatter_reduce`."""
    d, src = _checked(input, dim, index, src, reduce)
    if reduce == "sum" and include_self:
        return indexing.scatter_add.form("inplace")(input, d, index, src)
    return creation.copied.form("inplace")(input, _reduced(_kept(input, src), d, index, src, reduce, include_self))


# -- index_reduce -----------------------------------------------------------------------------------------------------
def _slices(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> tuple[int, Tensor]:
    """The canonical dim, and the index spread over the source's slices."""
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {title(index.dtype)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({title(input.dtype)}) and source ({title(source.dtype)}) must have the same "
            "scalar type"
        )
    if index.ndim > 1:
        raise IndexError(
            f"index_reduce_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{title(index.dtype)} and size: {list(index.shape)}"
        )
    if input.dtype.category in (BOOL, COMPLEX):
        raise NotImplementedError(f"\"index_func_\" not implemented for '{PYTHON_NAMES[input.dtype.name]}'")
    d = wrap_dim(dim, input.ndim)
    shape, given = tuple(input.shape), tuple(source.shape)
    if (*shape[:d], *shape[d + 1 :]) != (*given[:d], *given[d + 1 :]) or len(shape) != len(given):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(given)}"
        )
    size = given[d] if given else 1
    if index.numel() != size:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({size}), for "
            f"dim: {d}"
        )
    low, high = (int(index.amin().item()), int(index.amax().item())) if size and index.numel() else (0, -1)
    if low < 0 or high >= (shape[d] if shape else 1):
        raise IndexError("index out of range in self")
    spread = reshape(index, tuple(size if i == d else 1 for i in range(len(shape))))
    return d, spread.expand(given).to(int64)


@public(out="exact")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``input`` with the slices of ``source`` reduced along ``dim`` where ``index`` says: prod, mean, amax or amin.

    ``include_self=False`` leaves the old slices out where an index points to. Raises ``RuntimeError`` for another
    ``reduce`` and where sizes or dtypes do not fit, ``IndexError`` for indices out of range.
    """
    d, spread = _slices(input, dim, index, source, reduce)
    return _reduced(input, d, spread, source, reduce, include_self)


@public(is_function=False)
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place form of :func:`index_reduce`."""
    d, spread = _slices(input, dim, index, source, reduce)
    before = _kept(input, source)
    return creation.copied.form("inplace")(input, _reduced(before, d, spread, source, reduce, include_self))
