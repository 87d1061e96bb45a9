"""Reading and writing by index tensors.

Bounds are checked on every device; negative indices count back only where PyTorch's do.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.filled import zeroed
from candelabra._records.promotion import index as index_dtype
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of, unchecked

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Mask, Tensor


def _check_bounds(name: str, index: Any, dim: int, size: int) -> None:
    """Look at the values: only after a kernel has failed."""
    if index.numel():
        low, high = int(index.amin().item()), int(index.amax().item())
        if low < 0 or high >= size:
            bad = low if low < 0 else high
            if name in ("gather", "scatter"):
                raise RuntimeError(f"{name}(): index {bad} is out of bounds for dimension {dim} with size {size}")
            raise IndexError(
                f"{name}(): index out of range in self: index {bad} is out of bounds for dimension {dim} with size "
                f"{size}"
            )


@by
def _gathered(input: Tensor, dim: int, index: Tensor, *_: Any) -> tuple[int, ...]:
    shape, wanted = shape_of(input), shape_of(index)
    if 0 in wanted:
        return wanted
    if max(len(shape), 1) != max(len(wanted), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (have, want) in enumerate(zip(shape, wanted, strict=False)):
        if d != dim and want > have:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(wanted)} to be no larger than self "
                f"{list(shape)} apart from dimension {dim}"
            )
    _check_bounds("gather", index, dim, shape[dim] if shape else 1)
    return wanted


@operator(_gathered, public=False)
def gather(input: Tensor, dim: Dim, index: Index) -> Tensor:
    """``out[i, j, …] = input[index[i, j, …], j, …]`` (for ``dim`` 0): values picked along ``dim``, in index's shape."""
    ...


gather.vjp(input=lambda g, input_spec, dim, index: scatter_add(_zeros(input_spec, g), dim, index, g))


def _zeros(spec: Any, like: Tensor) -> Tensor:
    from candelabra._operators.creation.filled import full

    out: Tensor = full(spec.shape, 0, dtype=like.dtype, device=like.device)
    return out


@by
def _scattered(input: Tensor, dim: int, index: Tensor, src: Any, *_: Any) -> tuple[int, ...]:
    shape, wanted = shape_of(input), shape_of(index)
    if 0 in wanted:
        return shape
    if max(len(shape), 1) != max(len(wanted), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    source = shape_of(src)
    if hasattr(src, "_payload") and max(len(source), 1) != max(len(wanted), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d, want in enumerate(wanted):
        if (hasattr(src, "_payload") and want > source[d]) or (d != dim and want > shape[d]):
            raise RuntimeError(
                f"Expected index {list(wanted)} to be no larger than self {list(shape)} apart from dimension {dim} and "
                f"to be no larger size than src {list(source)}"
            )
    _check_bounds("scatter", index, dim, shape[dim] if shape else 1)
    return shape


@operator(_scattered, inplace=True, public=False)
def scatter_add(input: Tensor, dim: Dim, index: Index, src: Tensor) -> Tensor:
    """``input`` with ``src[i, j, …]`` added at ``[index[i, j, …], j, …]`` (for ``dim`` 0), in order: deterministic."""
    ...


scatter_add.vjp(
    input=lambda g: g,
    src=lambda g, src_spec, dim, index: _in_corner(g.gather(dim, index), src_spec.shape),
)


@operator(_scattered, inplace=True, method=False, public=False)
def scatter_src(input: Tensor, dim: Dim, index: Index, src: Tensor) -> Tensor:
    """``input`` with ``src[i, j, …]`` put at ``[index[i, j, …], j, …]`` (for ``dim`` 0); the last write wins."""
    ...


scatter_src.vjp(
    input=lambda g, dim, index: scatter_src(g, dim, index, zeroed(g.gather(dim, index))),
    src=lambda g, src_spec, dim, index: _in_corner(g.gather(dim, index), src_spec.shape),
)


def _in_corner(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of ``shape`` with ``g`` in the corner at the origin: where an index was smaller than its source."""
    from candelabra._operators.indexing.basic import basic_index_adjoint

    if tuple(g.shape) == tuple(shape):
        return g
    return basic_index_adjoint(g, shape, tuple(slice(0, size, 1) for size in g.shape))


@by
def _selected(input: Tensor, dim: int, index: Tensor) -> tuple[int, ...]:
    shape, picked = shape_of(input), shape_of(index)
    if len(picked) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not shape and picked not in ((), (1,)):
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {picked[0]} value(s)")
    _check_bounds("index_select", index, dim, shape[dim] if shape else 1)
    return (*shape[:dim], *(picked or (1,)), *shape[dim + 1 :]) if shape else ()


@operator(_selected, public=False)
def index_select(input: Tensor, dim: Dim, index: Index) -> Tensor:
    """The slices of ``input`` along ``dim`` that the 1-d ``index`` names, in its order."""
    ...


index_select.vjp(input=lambda g, input_spec, dim, index: index_add(_zeros(input_spec, g), dim, index, g))


@by
def _added(input: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[int, ...]:
    shape, picked, given = shape_of(input), shape_of(index), shape_of(source)
    if len(picked) > 1:
        raise IndexError("index_add_(): Index is supposed to be a vector")
    wanted = (*shape[:dim], *(picked or (1,)), *shape[dim + 1 :]) if shape else ()
    if given != wanted:
        if shape and len(given) == len(wanted) and given[dim] != wanted[dim]:
            raise RuntimeError(
                f"index_add_(): Number of indices ({wanted[dim]}) should be equal to source.size(dim): ({given[dim]}), "
                f"for dim: {dim}"
            )
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(given)}"
        )
    _check_bounds("index_add", index, dim, shape[dim] if shape else 1)
    return shape


@operator(_added, inplace=True, public=False)
def index_add(input: Tensor, dim: Dim, index: Index, source: Tensor) -> Tensor:
    """``input`` with the slices of ``source`` added at the places along ``dim`` that ``index`` names."""
    ...


index_add.vjp(input=lambda g: g, source=lambda g, dim, index: index_select(g, dim, index))


# -- advanced indexing ------------------------------------------------------------------------------------------------
def advanced_shape(shape: tuple[int, ...], indices: Sequence[Any]) -> tuple[int, ...]:
    """The shape of ``x[indices]``: index dims where the only run of indices stands, in front when there are several."""
    used = [d for d, i in enumerate(indices) if i is not None]
    try:
        picked = broadcast_shapes(*[shape_of(indices[d]) for d in used])
    except RuntimeError:
        shapes = ", ".join(str(list(shape_of(indices[d]))) for d in used)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    kept = [d for d in range(len(shape)) if d not in used]
    if used and used[-1] - used[0] + 1 == len(used):
        front = [shape[d] for d in kept if d < used[0]]
        return (*front, *picked, *[shape[d] for d in kept if d > used[0]])
    return (*picked, *[shape[d] for d in kept])


def _indexed_shape(input: Tensor, indices: Sequence[Any]) -> tuple[int, ...]:
    shape = shape_of(input)
    result = advanced_shape(shape, indices)
    for d, index in enumerate(indices):
        if index is not None and index.numel():
            low, high = int(index.amin().item()), int(index.amax().item())
            for value in (low, high):
                if not -shape[d] <= value < shape[d]:
                    raise IndexError(f"index {value} is out of bounds for dimension {d} with size {shape[d]}")
    return result


@operator(by(_indexed_shape), method=False, public=False)
def index(input: Tensor, indices: Sequence[Index | None]) -> Tensor:
    """Advanced indexing: per dim of the input an int64 tensor, or None to take all of it; negative ints count back."""
    ...


def _index_back(g: Tensor, input_spec: Any, indices: Sequence[Any]) -> Tensor:
    return index_put(_zeros(input_spec, g), indices, g, True)


index.vjp(input=_index_back)


@by
def _put(input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool) -> tuple[int, ...]:
    shape = shape_of(input)
    wanted, given = advanced_shape(shape, indices), shape_of(values)
    lead = len(wanted) - len(given)
    if lead < 0 or any(h not in (1, w) for h, w in zip(given, wanted[lead:], strict=True)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of shape "
            f"{list(wanted)}"
        )
    _indexed_shape(input, indices)
    return shape


@operator(_put, inplace=True, public=False)
def index_put(input: Tensor, indices: Sequence[Index | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``values`` (broadcast) put, or added, at ``[indices]``; in order, so that the last write wins."""
    ...


def _put_input(g: Tensor, indices: Sequence[Any], accumulate: bool) -> Tensor:
    return g if accumulate else index_put(g, indices, zeroed(index(g, indices)))


index_put.vjp(input=_put_input, values=lambda g, indices: index(g, indices))


@operator(unchecked, result=index_dtype, data_dependent=True, public=False)
def nonzero(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, one per row: shape (n, input.dim()), in C order."""
    ...


nonzero.no_gradient("the result is an index")


@by
def _masked(input: Tensor, mask: Tensor) -> None:
    broadcast_shapes(shape_of(input), shape_of(mask))  # how many elements come out, nobody knows before


@operator(_masked, data_dependent=True, public=False)
def masked_select(input: Tensor, mask: Mask) -> Tensor:
    """The elements where ``mask`` holds (the two broadcast), as a 1-d tensor in C order."""
    shape = broadcast_shapes(shape_of(input), shape_of(mask)) or (1,)
    return index(input.expand(shape), tuple(nonzero(mask.expand(shape)).unbind(1)))
