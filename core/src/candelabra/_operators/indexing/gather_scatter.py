"""Gathering and scattering along one dim: each element of an index tensor selects an element of the input.

Indices are int64 and do not count from the end from the end. Every device checks their bounds.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._geometry import Ints
from candelabra._layout import broadcast_shapes
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full, zeroed
from candelabra._operators.elementwise.selection import where
from candelabra._operators.indexing.basic import basic_index, basic_index_adjoint
from candelabra._operators.reductions.sums import check_tangent_shape
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import identical, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Number, Tensor


def index_outside(index: Tensor, low: int, high: int) -> int | None:
    """Return an element of ``index`` that is not in ``[low, high)``, or None. It reads values, so it is for the checks
    of records.
    """
    if index.numel():
        for value in (int(index.amin().item()), int(index.amax().item())):
            if not low <= value < high:
                return value
    return None


def _check_bounds(name: str, input: Tensor, dim: int, index: Tensor) -> None:
    size = input.shape[dim] if input.ndim else 1
    outside = index_outside(index, 0, size)
    if outside is not None:
        raise RuntimeError(f"{name}(): index {outside} is out of bounds for dimension {dim} with size {size}")


# -- gather -----------------------------------------------------------------------------------------------------------
@by
def _gathered(input: Tensor, dim: int, index: Tensor, *_: Any) -> Ints:
    shape, index_shape = shape_of(input), shape_of(index)
    if 0 in index_shape:
        return index_shape
    if max(len(shape), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (size, count) in enumerate(zip(shape, index_shape, strict=False)):
        if d != dim and count > size:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index_shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {dim}"
            )
    return index_shape


@operator(
    _gathered,
    check=lambda input, dim, index, *_: _check_bounds("gather", input, dim, index),
    out="exact",
    public=False,
)
def gather(input: Tensor, dim: Dim, index: Index) -> Tensor:
    """``out[i, j, …] = input[index[i, j, …], j, …]`` (for ``dim`` 0), in the shape of ``index``."""
    ...


gather.vjp(input=lambda g, input_spec, dim, index: scatter_add(new_full(g, input_spec.shape, 0), dim, index, g))


@operator(_gathered, out="exact", public=False)
def gather_sparse_grad(input: Tensor, dim: Dim, index: Index, *, sparse_grad: bool) -> Tensor:
    """Accept ``sparse_grad``, which has no effect: gradients are dense."""
    return gather(input, dim, index)


gather_overloads = overloads("gather", gather, gather_sparse_grad)


def _along_dim(input: Tensor, indices: Tensor, dim: int | None) -> tuple[Ints, Ints]:
    """Return the shapes to which ``input`` and ``indices`` expand."""
    shape, index_shape = shape_of(input), shape_of(indices)
    if dim is None or not (shape or index_shape):
        return shape, index_shape
    if len(shape) != len(index_shape):
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(index_shape)} dimensions for indices"
        )
    before = broadcast_shapes(shape[:dim], index_shape[:dim])
    after = broadcast_shapes(shape[dim + 1 :], index_shape[dim + 1 :])
    return (*before, shape[dim], *after), (*before, index_shape[dim], *after)


@by
def _taken_along_dim(input: Tensor, indices: Tensor, dim: int | None) -> Ints:
    return (indices.numel(),) if dim is None else _along_dim(input, indices, dim)[1]


@operator(_taken_along_dim, out="exact")
def take_along_dim(input: Tensor, indices: Index, dim: Dim | None = None) -> Tensor:
    """Return :func:`gather` with all dims except ``dim`` broadcast; without ``dim`` both tensors are flattened first.

    Negative indices count from the end. Raises ``RuntimeError`` for indices out of bounds and for shapes that do not
    broadcast.
    """
    if dim is None:
        return take_along_dim(input.flatten(), indices.flatten(), 0)
    size = input.shape[dim] if input.ndim else 1
    indices = where(indices < 0, indices + size, indices)
    expanded, index_shape = _along_dim(input, indices, dim)
    return gather(input.expand(expanded), dim, indices.expand(index_shape))


# -- scatter ----------------------------------------------------------------------------------------------------------
def scattered_shape(input: Tensor, dim: int, index: Tensor, src: Any = None, *_: Any) -> Ints:
    """Return the shape of ``input``, if ``index`` and ``src`` fit it. Raise ``RuntimeError`` otherwise."""
    shape, index_shape = shape_of(input), shape_of(index)
    source = shape_of(src) if hasattr(src, "shape") else index_shape
    if 0 in index_shape:
        return shape
    if max(len(shape), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if max(len(source), 1) != max(len(index_shape), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d, count in enumerate(index_shape):
        if (source and count > source[d]) or (d != dim and count > shape[d]):
            raise RuntimeError(
                f"Expected index {list(index_shape)} to be no larger than self {list(shape)} apart from dimension "
                f"{dim} and to be no larger size than src {list(source)}"
            )
    return shape


def _check_scattered(input: Tensor, dim: int, index: Tensor, *_: Any) -> None:
    _check_bounds("scatter", input, dim, index)


_scattered = by(scattered_shape)


@operator(_scattered, check=_check_scattered, promote=identical, inplace=True, out="exact", autocast=Autocast("widest"))
def scatter_add(input: Tensor, dim: Dim, index: Index, src: Tensor) -> Tensor:
    """Return ``input`` with ``src[i, j, …]`` added at ``[index[i, j, …], j, …]`` (for ``dim`` 0).

    Elements are added in the order of ``src``, so the result is deterministic. An element to which n terms are added
    has an error of at most ``n * u * sum(abs(terms))``, where u is the unit roundoff of the dtype: that of a sequential
    sum (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 4.2). Half types are added in float32 and
    rounded once.
    """
    ...


scatter_add.vjp(
    input=lambda g: g,
    src=lambda g, src_spec, dim, index: _padded(gather(g, dim, index), src_spec.shape),
)


@operator(_scattered, check=_check_scattered, promote=identical, inplace=True, out="exact", method=False, public=False)
def scatter_src(input: Tensor, dim: Dim, index: Index, src: Tensor) -> Tensor:
    """Return ``input`` with ``src[i, j, …]`` at ``[index[i, j, …], j, …]`` (for ``dim`` 0); the last write wins."""
    ...


scatter_src.vjp(
    input=lambda g, dim, index: without_scattered(g, dim, index),
    src=lambda g, src_spec, dim, index: _padded(gather(g, dim, index), src_spec.shape),
)


def without_scattered(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return ``x`` with zeros at the elements that ``index`` selects."""
    return scatter_src(x, dim, index, new_full(x, tuple(index.shape), 0))


def _padded(g: Tensor, shape: Ints) -> Tensor:
    """Return ``g`` with zeros after its end along each dim: the gradient of a source that is larger than the index."""
    if tuple(g.shape) == tuple(shape):
        return g
    return basic_index_adjoint(g, shape, tuple(slice(0, size, 1) for size in g.shape))


def cropped(src: Tensor, shape: Ints) -> Tensor:
    """Return the part of ``src`` that an index of that shape covers."""
    if tuple(src.shape) == shape or src.ndim != len(shape):
        return src
    return basic_index(src, tuple(slice(0, size, 1) for size in shape))


# -- scatter: products and extrema ------------------------------------------------------------------------------------
@operator(_scattered, check=_check_scattered, promote=identical, inplace=True, method=False, public=False)
def scatter_extreme(input: Tensor, dim: Dim, index: Index, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Return ``input`` with the product (``"prod"``), maximum (``"amax"``) or minimum (``"amin"``) of the elements of
    ``src``.

    ``src`` has the shape of ``index``. With ``include_self`` the elements of ``input`` are included; without it, those
    that ``index`` selects are replaced. NaN is propagated.
    """
    ...


Gradients = tuple["Tensor | None", "Tensor | None"]


def _extreme_gradients(
    g: Tensor,
    input: Tensor,
    src: Tensor,
    out: Tensor,
    dim: int,
    index: Tensor,
    reduce: str,
    include_self: bool,
    needs: tuple[bool, bool],
) -> Gradients:
    if reduce == "prod":
        return _product_gradients(g, input, src, out, dim, index, include_self, needs)
    # All elements that equal the extreme share its gradient evenly, as in amax over a dim.
    own, chosen, count = _extreme_elements(input, src, out, dim, index, include_self)
    share = g / count
    return own * share if needs[0] else None, chosen * gather(share, dim, index) if needs[1] else None


def _extreme_elements(
    input: Tensor, src: Tensor, out: Tensor, dim: int, index: Tensor, include_self: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return 1 for the elements of ``input`` and ``src`` that equal the extreme, and their number for each result."""
    chosen = (src == gather(out, dim, index)).to(out.dtype)
    own = (input == out).to(out.dtype)
    if not include_self:
        own = without_scattered(own, dim, index)
    return own, chosen, scatter_add(own, dim, index, chosen).clamp_min(1)


def _product_gradients(
    g: Tensor,
    input: Tensor,
    src: Tensor,
    out: Tensor,
    dim: int,
    index: Tensor,
    include_self: bool,
    needs: tuple[bool, bool],
) -> Gradients:
    """Return ``out / x`` for each factor x. For a single zero in a product, it is the product of the other factors."""
    to_input = to_src = None
    if needs[0]:
        others = scatter_extreme(new_full(input, tuple(input.shape), 1), dim, index, src, "prod", True)
        to_input = g * others.conj()
        if not include_self:
            to_input = without_scattered(to_input, dim, index)
    if needs[1]:
        zero = src == 0
        zeros = scatter_add(zeroed(input), dim, index, zero.to(input.dtype))
        only = zero & (gather(zeros, dim, index) == 1)
        others = scatter_extreme(input, dim, index, src.masked_fill(only, 1), "prod", include_self)
        at_zero = gather(g * others.conj(), dim, index)
        elsewhere = gather(g * out.conj(), dim, index) / src.masked_fill(zero, 1).conj()
        to_src = where(only, at_zero, elsewhere)
    return to_input, to_src


scatter_extreme.vjp(("input", "src"), _extreme_gradients)


class ScatteredExtremeAlong(NamedTuple):
    """A scattered extreme, and its derivative along tangents."""

    extreme: Tensor
    slope: Tensor


@by
def _shapes_along(
    t_input: Tensor, t_src: Tensor | None, input: Tensor, dim: Dim, index: Index, src: Tensor, *_: Any
) -> tuple[Ints, Ints]:
    check_tangent_shape("scatter_extreme", t_input, input)
    if t_src is not None:
        check_tangent_shape("scatter_extreme", t_src, src)
    shape = scattered_shape(input, dim, index, src)
    return shape, shape


@operator(
    _shapes_along,
    result=(same, same),
    check=lambda t_input, t_src, input, dim, index, *_: _check_bounds("scatter", input, dim, index),
    promote=identical,
    accepts="real floating",
    method=False,
    public=False,
)
def scatter_extreme_along(
    t_input: Tensor,
    t_src: Tensor | None,
    input: Tensor,
    dim: Dim,
    index: Index,
    src: Tensor,
    reduce: str,
    include_self: bool,
) -> ScatteredExtremeAlong:
    """Return :func:`scatter_extreme` for ``"amax"`` or ``"amin"``, and its derivative along tangents of ``input`` and
    ``src``: the mean of the tangents of all elements that equal the extreme. It is 0 where the extreme is NaN.
    """
    out = scatter_extreme(input, dim, index, src, reduce, include_self)
    own, chosen, count = _extreme_elements(input, src, out, dim, index, include_self)
    total = where(own != 0, t_input, 0)  # another element's tangent may be infinite
    if t_src is not None:
        total = scatter_add(total, dim, index, where(chosen != 0, t_src, 0))
    return ScatteredExtremeAlong(out, total / count)


def _extreme_along(
    input: Tensor,
    src: Tensor,
    dim: int,
    index: Tensor,
    reduce: str,
    include_self: bool,
    t_input: Tensor | None = None,
    t_src: Tensor | None = None,
) -> Any:
    # Each element of input and of src affects one element of the result.
    if reduce != "prod":
        along = zeroed(input) if t_input is None else t_input
        return scatter_extreme_along.canonical(along, t_src, input, dim, index, src, reduce, include_self)
    out = scatter_extreme(input, dim, index, src, reduce, include_self)
    one, needs = new_full(out, tuple(out.shape), 1), (t_input is not None, t_src is not None)
    to_input, to_src = _product_gradients(one, input, src, out, dim, index, include_self, needs)
    along = zeroed(out) if to_input is None or t_input is None else to_input.conj() * t_input
    if to_src is None or t_src is None:
        return out, along
    return out, scatter_add(along, dim, index, to_src.conj() * t_src)


scatter_extreme.jvp(_extreme_along, joint=True)


# -- the overload set --------------------------------------------------------------------------------------------------
_place_scattered = by(lambda input, dim, index, *_: scattered_shape(input, dim, index))


def _filled(input: Tensor, index: Tensor, value: Any) -> Tensor:
    return new_full.canonical(input, tuple(index.shape), number_for(value, input.dtype), None)


@operator(_place_scattered, inplace=True, out="exact", method=False, public=False)
def scatter_value(input: Tensor, dim: Dim, index: Index, value: Number) -> Tensor:
    """Write ``value``, a number that is converted to the dtype of ``input``, instead of ``src``."""
    return scatter_src.canonical(input, dim, index, _filled(input, index, value))


@scatter_value.in_place
def _scatter_value_in_place(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return scatter_src.form("inplace")(input, dim, index, _filled(input, index, value))


@operator(_scattered, promote=identical, inplace=True, out="exact", method=False, public=False)
def scatter_reduced(input: Tensor, dim: Dim, index: Index, src: Tensor, *, reduce: str | None) -> Tensor:
    """Combine the elements of ``src`` with those of ``input`` by ``reduce``, "add" or "multiply"."""
    if reduce is None:
        return scatter_src.canonical(input, dim, index, src)
    if reduce == "add":
        return scatter_add.canonical(input, dim, index, src)
    if reduce != "multiply":
        raise RuntimeError("reduce argument must be either add or multiply.")
    scattered_shape(input, dim, index, src)
    return scatter_extreme.canonical(input, dim, index, cropped(src, tuple(index.shape)), "prod", True)


@operator(_place_scattered, inplace=True, out="exact", method=False, public=False)
def scatter_value_reduced(input: Tensor, dim: Dim, index: Index, value: Number, *, reduce: str | None) -> Tensor:
    """Combine ``value`` with the elements of ``input`` by ``reduce``, "add" or "multiply"."""
    return scatter_reduced.canonical(input, dim, index, _filled(input, index, value), reduce)


scatter = overloads("scatter", scatter_src, scatter_value, scatter_reduced, scatter_value_reduced, inplace=True)
