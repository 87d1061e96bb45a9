"""Putting tensors together and taking them apart."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of, wrap_dim
from candelabra._operators.primitives import joining, views
from candelabra._records.callables import public
from candelabra.dtypes import promote_types

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public(method=False, aliases=("concat", "concatenate"), out=True)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after another along ``dim``; all other sizes must agree, save that empty vectors are passed over.

    Raises ``ValueError`` for no tensors, ``RuntimeError`` for sizes that do not agree and for 0-d tensors.
    """
    if isinstance(tensors, (tuple, list)):
        if not tensors:
            raise ValueError("cat(): expected a non-empty list of Tensors")
        kept = [t for t in tensors if not hasattr(t, "_payload") or tuple(t._payload.shape) != (0,)]
        passed_over = 0 < len(kept) < len(tensors) and all(hasattr(t, "_payload") for t in kept)
        if passed_over and any(t.ndim != 1 for t in kept):
            common = kept[0].dtype
            for t in tensors:
                common = promote_types(common, t.dtype)
            tensors = [kept[0].to(common), *kept[1:]]
    return joining.cat.function(tensors, dim)


@public(method=False, out=True)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new dim."""
    if hasattr(tensors, "_payload"):
        raise TypeError("stack(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    payload = getattr(tensors[0], "_payload", None) if tensors else None
    first = () if payload is None else tuple(payload.shape)
    for number, tensor in enumerate(tensors):
        if not hasattr(tensor, "_payload"):
            raise TypeError(f"expected Tensor as element {number} in argument 'tensors', but got {kind_of(tensor)}")
        if tuple(tensor._payload.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(tensor.shape)} at entry {number}"
            )
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    d = wrap_dim(dim, len(first) + 1)
    return joining.cat.function([views.unsqueeze.function(t, d) for t in tensors], d)


@public
def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0, *, axis: int | None = None
) -> tuple[Tensor, ...]:
    """Views of the given size (the last may be smaller), or of the given sizes, along ``dim``."""
    dim = dim if axis is None else axis
    d, shape = wrap_dim(dim, tensor.ndim), tuple(tensor._payload.shape)
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size = shape[d]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if step < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
        if step == 0 and size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        sections = [min(step, size - start) for start in range(0, size, step or 1)] or [0]
    else:
        sections = list(split_size_or_sections)
        if sum(sections) != size or any(s < 0 for s in sections):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension "
                f"{d}), but got split_sizes={sections}"
            )
    parts: list[Any] = []
    start = 0
    for length in sections:
        index = geometry.one_slice(shape, d, start, start + length)
        parts.append(views.basic_index.function(tensor, index))
        start += length
    return tuple(parts)


@public
def chunk(input: Tensor, chunks: int, dim: int = 0, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal size (but the last) along ``dim``."""
    dim = dim if axis is None else axis
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[wrap_dim(dim, input.ndim)]
    return split(input, max(1, -(-size // chunks)), dim)
