"""Operators on the slices along one dim that a vector of indices selects: ``index_select``, ``index_add``,
``index_fill``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Ints
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.arithmetic import mul
from candelabra._operators.indexing.advanced import index_put
from candelabra._operators.indexing.gather_scatter import index_outside
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import by_arguments, identical, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import bool_

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Number, Tensor


def _check_bounds(name: str, input: Tensor, dim: int, index: Tensor) -> None:
    size = input.shape[dim] if input.ndim else 1
    outside = index_outside(index, 0, size)
    if outside is not None:
        raise IndexError(
            f"{name}(): index out of range in self: index {outside} is out of bounds for dimension {dim} with size "
            f"{size}"
        )


# -- index_select -----------------------------------------------------------------------------------------------------
@by
def _selected(input: Tensor, dim: int, index: Tensor) -> Ints:
    shape, selected = shape_of(input), shape_of(index)
    if len(selected) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not shape and selected not in ((), (1,)):
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {selected[0]} value(s)")
    return (*shape[:dim], *(selected or (1,)), *shape[dim + 1 :]) if shape else ()


@operator(_selected, check=lambda input, dim, index: _check_bounds("index_select", input, dim, index), out="exact")
def index_select(input: Tensor, dim: Dim, index: Index) -> Tensor:
    """Return the slices of ``input`` along ``dim`` that the 1-d ``index`` selects, in its order.

    Raises ``IndexError`` for indices out of bounds; they do not count from the end.
    """
    ...


index_select.vjp(input=lambda g, input_spec, dim, index: index_add(new_full(g, input_spec.shape, 0), dim, index, g))


# -- index_add, index_copy --------------------------------------------------------------------------------------------
def fits_slices(count_error: type[Exception]) -> Any:
    """Return the rule of operators that combine the slices of ``input`` along ``dim`` with those of ``source``.

    ``count_error`` is the class of the error for a source with more or fewer slices than indices.
    """

    def slices(op: Any, args: tuple[Any, ...]) -> Ints:
        input, dim, index, source, *_ = args
        shape, selected, source_shape = shape_of(input), shape_of(index), shape_of(source)
        if len(selected) > 1:
            raise IndexError(f"{op.title}(): Index is supposed to be a vector, but got {len(selected)} dims")
        expected_shape = (*shape[:dim], *(selected or (1,)), *shape[dim + 1 :]) if shape else ()
        if source_shape == expected_shape:
            return shape
        if shape and len(source_shape) == len(expected_shape) and source_shape[dim] != expected_shape[dim]:
            raise count_error(
                f"{op.title}(): Number of indices ({expected_shape[dim]}) should be equal to source.size(dim): "
                f"({source_shape[dim]}), for dim: {dim}"
            )
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(shape)} source.shape = {list(source_shape)}"
        )

    return slices


_added = fits_slices(RuntimeError)
_copied = fits_slices(IndexError)


@operator(
    _added,
    check=lambda input, dim, index, source: _check_bounds("index_add", input, dim, index),
    promote=identical,
    inplace=True,
    out="exact",
    public=False,
)
def index_add(input: Tensor, dim: Dim, index: Index, source: Tensor) -> Tensor:
    """Return ``input`` with the slices of ``source`` added to the slices along ``dim`` that the 1-d ``index`` selects.

    Slices are added in order, half types in float32, with the error of :func:`scatter_add`. Raises ``IndexError`` for
    indices out of bounds, ``RuntimeError`` for different dtypes and for shapes that do not fit.
    """
    ...


index_add.vjp(input=lambda g: g, source=lambda g, dim, index: index_select(g, dim, index))


@operator(_added, promote=identical, inplace=True, out="exact", public=False)
def index_add_scaled(input: Tensor, dim: Dim, index: Index, source: Tensor, *, alpha: Number) -> Tensor:
    """``source`` is multiplied by ``alpha``, converted to its dtype, first."""
    return index_add(input, dim, index, mul(source, number_for(alpha, source.dtype)))


index_add_overloads = overloads("index_add", index_add, index_add_scaled, inplace=True)


@operator(_copied, promote=identical, inplace=True, out="exact", autocast=Autocast(host="widest"))
def index_copy(input: Tensor, dim: Dim, index: Index, source: Tensor) -> Tensor:
    """Return ``input`` with the slices of ``source`` instead of the slices along ``dim`` that the 1-d ``index``
    selects.

    Negative indices count from the end. Raises ``IndexError`` for indices out of bounds and for another number of
    slices, ``RuntimeError`` for different dtypes and slices of another shape.
    """
    shape: Ints = _copied(index_copy, (input, dim, index, source))
    if not shape:
        return index_copy(input.unsqueeze(0), 0, index, source.unsqueeze(0)).squeeze(0)
    return index_put(input, (*(None,) * dim, index.flatten()), source)


# -- index_fill -------------------------------------------------------------------------------------------------------
@by
def _filled(input: Tensor, dim: int, index: Tensor, value: Any) -> Ints:
    if len(shape_of(index)) > 1:
        raise RuntimeError("index_fill(): Index has to be a vector/scalar")
    if shape_of(value):
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(shape_of(value))} dimension(s)."
        )
    return shape_of(input)


@operator(_filled, promote=unpromoted, result=by_arguments, inplace=True, out=False)
def index_fill(input: Tensor, dim: Dim, index: Index, value: Tensor | Number) -> Tensor:
    """Return ``input`` with ``value`` in the slices along ``dim`` that the 1-d ``index`` selects.

    ``value`` is a number or a 0-d tensor, and is converted to the dtype of ``input``. Negative indices count from the
    end. Raises ``IndexError`` for indices out of bounds, ``RuntimeError`` for a value that the dtype cannot hold.
    """
    _filled(index_fill, (input, dim, index, value))
    # A mask and not index_put(): the gradient of a slice that is selected twice reaches the value once.
    selected = new_full(input, (input.shape[dim] if input.ndim else 1,), False, dtype=bool_)
    selected = index_put(selected, (index.flatten(),), new_full(input, (), True, dtype=bool_))
    return input.masked_fill(selected.reshape([-1 if d == dim else 1 for d in range(input.ndim)]), value)
