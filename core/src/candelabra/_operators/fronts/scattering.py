"""Indexing under names of its own: scatter, index_add, take and their kin."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.promote import title
from candelabra._layout import broadcast_shapes, wrap_dim
from candelabra._operators.elementwise import arithmetic, selection
from candelabra._operators.fronts.indexing import per_dim
from candelabra._operators.fronts.numbers import number_for
from candelabra._operators.indexing.basic import basic_index
from candelabra._operators.primitives import creation, indexing
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow
from candelabra._records.callables import public
from candelabra._tensor import Tensor
from candelabra.dtypes import bool_, dtype, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def raveled(x: Tensor) -> Tensor:
    """``x`` as 1-d, of no elements too."""
    return reshape(x, -1 if x.numel() else 0)


# -- index tensors per dim --------------------------------------------------------------------------------------------
def _indices(indices: Any, input: Tensor, name: str) -> tuple[Tensor | None, ...]:
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    placed: list[tuple[int, Tensor]] = []
    place = 0
    for index in indices:
        if index is not None:
            placed.append((place, index))
        place += index.ndim if index is not None and index._keys & bool_.bit else 1
    if place > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim} (got {place})")
    return per_dim(placed)


def _same_dtype(input: Tensor, values: Tensor) -> None:
    if values.dtype is not input.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{title(input.dtype)} for the destination and {title(values.dtype)} for the source."
        )


@public
def index_put(input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``values`` (broadcast) put, or added, at ``[indices]``: int or bool tensors, or None, per dim."""
    _same_dtype(input, values)
    return indexing.index_put.function(input, _indices(indices, input, "index_put"), values, accumulate)


@public
def index_put_(input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of :func:`index_put`."""
    _same_dtype(input, values)
    return indexing.index_put.form("inplace")(input, _indices(indices, input, "index_put_"), values, accumulate)


@public(out="exact")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements, a row each; with ``as_tuple`` a 1-d tensor per dim (0-d: one)."""
    if not as_tuple:
        return indexing.nonzero.function(input)
    return indexing.nonzero.function(input if input.ndim else reshape(input, 1)).unbind(1)


@public
def argwhere(input: Tensor) -> Tensor:
    """``nonzero(input)``."""
    return indexing.nonzero.function(input)


@public(out="exact")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements of ``input``, seen as 1-d, at the int64 ``index``, in its shape; negative indices count back."""
    if not index._keys & int64.bit:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {title(index.dtype)}")
    count = input.numel()
    if index.numel():
        low, high = int(index.amin().item()), int(index.amax().item())
        for place in (low, high):
            if not -count <= place < count:
                raise IndexError(f"out of range: tried to access index {place} on a tensor of {count} elements.")
    flat = raveled(index)
    return reshape(indexing.index.function(raveled(input), (flat,)), tuple(index.shape))


@public(out="exact")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """:func:`gather` with all dims but ``dim`` broadcast; without ``dim`` both are seen as 1-d."""
    if not indices._keys & int64.bit:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {title(indices.dtype)}")
    if dim is None:
        return indexing.gather.function(raveled(input), 0, raveled(indices))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    d = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return indexing.gather.function(input, 0, indices)
    common = list(broadcast_shapes(
        [1 if i == d else s for i, s in enumerate(input.shape)],
        [1 if i == d else s for i, s in enumerate(indices.shape)],
    ))  # fmt: skip
    if indices.numel() and indices.amin().item() < 0:
        indices = selection.where.function(indices < 0, indices + input.shape[d], indices)
    wide = [*common[:d], input.shape[d], *common[d + 1 :]]
    picked = [*common[:d], indices.shape[d], *common[d + 1 :]]
    return indexing.gather.function(input.expand(wide), d, indices.expand(picked))


# -- along one dim ----------------------------------------------------------------------------------------------------
@public(out="exact")
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """``out[i, j, …] = input[index[i, j, …], j, …]`` (for ``dim`` 0): values picked along ``dim``, in index's shape.

    ``sparse_grad`` is a hint: the gradient is dense.
    """
    return indexing.gather.function(input, dim, index)


@public(out="exact")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of ``input`` along ``dim`` that the 1-d ``index``, int32 or int64, names, in its order."""
    if isinstance(index, Tensor) and index.dtype.name not in ("int64", "int32"):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    return indexing.index_select.function(input, dim, index)


@public(out="exact")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the bool ``mask`` holds (the two broadcast), as a 1-d tensor in C order."""
    if isinstance(mask, Tensor) and not mask._keys & bool_.bit:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return indexing.masked_select.function(input, mask)


def _scaled(input: Tensor, source: Tensor, alpha: Any) -> Tensor:
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_add_(): self ({title(input.dtype)}) and source ({title(source.dtype)}) must have the same scalar "
            "type"
        )
    return source if alpha == 1 else arithmetic.mul.function(source, number_for(alpha, input.dtype))


@public(out="exact")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """``input`` with ``alpha`` times the slices of ``source`` added along ``dim`` where ``index`` says, in order."""
    return indexing.index_add.function(input, dim, index, _scaled(input, source, alpha))


@public
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """In-place form of :func:`index_add`."""
    return indexing.index_add.form("inplace")(input, dim, index, _scaled(input, source, alpha))


# -- scatter ----------------------------------------------------------------------------------------------------------
def _scatter(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str | None, form: str) -> Tensor:
    if not isinstance(src, Tensor):
        number = number_for(src, input.dtype)
        src = creation.full.function(tuple(index.shape), number, dtype=input.dtype, device=input._instance)
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if reduce == "multiply":
        return _scatter_multiplied(input, dim, index, src, form)
    if reduce not in (None, "add"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    record: Operator[..., Any] = indexing.scatter_src if reduce is None else indexing.scatter_add
    out: Tensor = record.form(form)(input, dim, index, src)
    return out


def _scatter_multiplied(input: Tensor, dim: int, index: Tensor, src: Tensor, form: str) -> Tensor:
    # One factor per place and turn: the n-th turn multiplies by every place's n-th factor.
    d = wrap_dim(dim, input.ndim)
    if not index.ndim or not index.shape[d]:
        factors = [(index, src)] if index.numel() else []
    else:
        factors = [(narrow(index, d, i, 1), narrow(src, d, i, 1)) for i in range(index.shape[d])]
    out = input
    for places, factor in factors:
        product = indexing.gather.function(out, d, places) * _cut(factor, tuple(places.shape))
        out = indexing.scatter_src.function(out, d, places, product)
    if form == "function":
        return out if out is not input else input.clone()
    return creation.copied.form("inplace")(input, out)


def _cut(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The corner at the origin."""
    if tuple(x.shape) == shape:
        return x
    return basic_index(x, tuple(slice(0, size, 1) for size in shape))


@public(out="exact")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """``input`` with ``src`` (a tensor or a number) put along ``dim`` where ``index`` says; the last write wins.

    ``reduce`` "add" or "multiply" combines with what is there instead. Raises ``RuntimeError`` for indices out of
    bounds, and where ``src`` has another dtype than ``input``.
    """
    return _scatter(input, dim, index, value if src is None else src, reduce, "function")


@public
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place form of :func:`scatter`."""
    return _scatter(input, dim, index, value if src is None else src, reduce, "inplace")


@public(out="exact")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with ``src`` added along ``dim`` where ``index`` says, in order."""
    return _scatter(input, dim, index, src, "add", "function")


@public
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """In-place form of :func:`scatter_add`."""
    return _scatter(input, dim, index, src, "add", "inplace")


# -- masks ------------------------------------------------------------------------------------------------------------
def as_dtype(src: Tensor, d: dtype) -> Tensor:
    """``src`` in the dtype."""
    return src if src.dtype is d else creation.cast.function(src, dtype=d)
