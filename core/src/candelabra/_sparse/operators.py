"""The operators of sparse tensors: functions of the indices and values, found by the name of the operator's record.

Each function takes the canonical arguments of the record. Its operators are dispatched and recorded as usual, so a
sparse tensor needs neither kernels nor derivatives of its own. A composite without a function here runs its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._dispatch.resolve import by_position
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import PLAIN, TENSOR
from candelabra._sparse.construction import coalesced, dense, flat_positions, summed
from candelabra._sparse.products import joined, multiplied
from candelabra._sparse.tensor import SparseTensor, assembled, like
from candelabra._tensor import Tensor
from candelabra.dtypes import dtype, promote_types

if TYPE_CHECKING:
    from candelabra._records.record import Operator

HANDLERS: Final[dict[str, Callable[..., Any]]] = {}
INPLACE: Final[dict[str, Callable[..., Any]]] = {}
_KEEPS_ZEROS: Final[dict[tuple[Operator[..., Any], dtype, tuple[Any, ...]], bool]] = {}


def sparse_operator(op: Operator[..., Any], inplace: bool) -> Callable[..., Any]:
    """Return the function that serves calls of an operator with sparse tensors."""
    handler = HANDLERS.get(op.name) or (_on_values(op) if _is_elementwise(op) else None)
    if inplace and op.name in INPLACE:
        return INPLACE[op.name]
    if handler is None and op.body is not None and not inplace:
        return by_position(op, op.body)
    if handler is None:
        return _refusing(op)
    return _written(handler) if inplace else handler


def _refusing(op: Operator[..., Any]) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            f"{op.title}() is not implemented for sparse tensors; call to_dense() first, or use the indices() and "
            "values() of the tensor"
        )

    return refuse


def _written(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the in-place form of a function: the first argument takes the elements of the result."""

    def write(target: Any, *args: Any) -> Any:
        out = handler(target, *args)
        if not isinstance(target, SparseTensor):
            return target.copy_(out)
        target._become(out)
        return target

    return write


def serves(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for the operators of these names."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


def _is_elementwise(op: Operator[..., Any]) -> bool:
    """Return whether an operator computes each element of its result from one element of its only tensor."""
    first, *others = op.schema.parameters
    return (
        getattr(op.rule, "pointwise", False)
        and not op.random
        and first.kind == TENSOR
        and all(p.kind == PLAIN for p in others)
    )


def _on_values(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return the function that applies an operator to the values. It refuses an operator that does not keep zeros."""

    def apply(input: SparseTensor, *options: Any) -> Any:
        total = coalesced(input)
        values = total._payload.values
        if not _keeps_zeros(op, values.new_zeros(()), options):
            return _refusing(op)()
        return like(total, op.canonical(values, *options))

    return apply


def _keeps_zeros(op: Operator[..., Any], zero: Tensor, options: tuple[Any, ...]) -> bool:
    """Return whether the operator is 0 at 0, for a dtype and options. The answer is computed once."""
    key = (op, zero.dtype, options)
    if key not in _KEEPS_ZEROS:
        _KEEPS_ZEROS[key] = not op.canonical(zero, *options).any().item()
    return _KEEPS_ZEROS[key]


@serves("real")
def real(input: SparseTensor) -> Tensor:
    """Return the real parts."""
    return like(input, input._payload.values.real)


@serves("imag")
def imag(input: SparseTensor) -> Tensor:
    """Return the imaginary parts."""
    return like(input, input._payload.values.imag)


@serves("cast")
def cast(input: SparseTensor, dtype: Any) -> Tensor:
    """Convert the values."""
    return like(input, input._payload.values.to(dtype))


@serves("moved")
def moved(input: SparseTensor, device: Any, dtype: Any) -> Tensor:
    """Move indices and values to a device."""
    shape, indices, values, known = input._payload
    target = getattr(device, "device", device)
    return assembled(indices.to(target), values.to(target, dtype), shape, known)


@serves("clone")
def clone(input: SparseTensor) -> Tensor:
    """Copy indices and values."""
    shape, indices, values, known = input._payload
    return assembled(indices.clone(), values.clone(), shape, known)


# -- sums and products of elements ------------------------------------------------------------------------------------
@serves("add")
def add(input: Any, other: Any) -> Any:
    """Add two sparse tensors of one shape; or a sparse and a dense tensor, with a dense result."""
    for one, two in ((input, other), (other, input)):
        if not isinstance(one, SparseTensor):
            if not isinstance(one, Tensor) or one.shape != two.shape:
                _shapes_must_agree("add", input, other)
            return one.to(promote_types(one.dtype, two.dtype)) + dense(two)
    if input.shape != other.shape or input.sparse_dim() != other.sparse_dim():
        _shapes_must_agree("add", input, other)
    common = promote_types(input.dtype, other.dtype)
    values = [t._payload.values.to(common) for t in (input, other)]
    indices = [t._payload.indices for t in (input, other)]
    return assembled(_cat(indices, 1), _cat(values, 0), input.shape)


@serves("sub")
def sub(input: Any, other: Any) -> Any:
    """Subtract; see :func:`add`."""
    return add(input, -other)


@serves("add_scaled")
def add_scaled(input: Any, other: Any, alpha: Any) -> Any:
    """``input + alpha * other``."""
    return add(input, other if alpha == 1 else other * alpha)


@serves("sub_scaled")
def sub_scaled(input: Any, other: Any, alpha: Any) -> Any:
    """``input - alpha * other``."""
    return add(input, other * -alpha)


def _add_in_place(target: Any, other: Any, alpha: Any = 1) -> Any:
    """``target += alpha * other``. A dense target gets the values at their positions, in place."""
    if isinstance(target, SparseTensor):
        target._become(add_scaled(target, other, alpha))
        return target
    if target.shape != other.shape:
        _shapes_must_agree("add_", target, other)
    values = other._payload.values if alpha == 1 else other._payload.values * alpha
    positions = tuple(other._payload.indices.unbind(0))
    return target.index_put_(positions, values.to(target.dtype), accumulate=True)


def _fill_in_place(target: Any, value: Any) -> Any:
    """Remove all elements. A fill with another number needs a dense tensor."""
    if value != 0:
        raise RuntimeError(f"fill_(): a sparse tensor can only be filled with 0, got {value}")
    shape, indices, values, _ = target._payload
    target._become(assembled(indices[:, :0], values.detach()[:0], shape, True))
    return target


INPLACE["filled"] = _fill_in_place
INPLACE["add"] = INPLACE["add_scaled"] = _add_in_place
INPLACE["sub"] = INPLACE["sub_scaled"] = lambda target, other, alpha=1: _add_in_place(target, other, -alpha)


def _shapes_must_agree(name: str, input: Any, other: Any) -> None:
    shown = [list(t.shape) if isinstance(t, Tensor) else t for t in (input, other)]
    raise RuntimeError(f"{name}(): sparse tensors need operands of one shape, got {shown[0]} and {shown[1]}")


@serves("mul")
def mul(input: Any, other: Any) -> Tensor:
    """Multiply by a number, a 0-d tensor, or a tensor: the result has only positions that the sparse operands have."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if not isinstance(other, Tensor) or other.ndim == 0:
        return like(input, input._payload.values * _number(other))
    if not isinstance(other, SparseTensor):
        return like(input, input._payload.values * _elements(other, input))
    if input.shape != other.shape or input.sparse_dim() != other.sparse_dim():
        _shapes_must_agree("mul", input, other)
    one, two = coalesced(input)._payload, coalesced(other)._payload
    sizes = one.shape[: one.indices.shape[0]]
    left, right = joined(flat_positions(one.indices, sizes), flat_positions(two.indices, sizes))
    return assembled(one.indices.index_select(1, left), one.values[left] * two.values[right], one.shape, True)


@serves("div")
def div(input: Any, other: Any) -> Tensor:
    """Divide by a number, a 0-d tensor or a dense tensor."""
    if isinstance(other, SparseTensor):
        raise RuntimeError("div(): the divisor of a sparse tensor must be a number or a dense tensor")
    if not isinstance(other, Tensor) or other.ndim == 0:
        return like(input, input._payload.values / _number(other))
    return like(input, input._payload.values / _elements(other, input))


@serves("pow")
def pow(input: Any, exponent: Any) -> Tensor:
    """Raise to a positive power, which keeps zeros."""
    if isinstance(exponent, Tensor) or not exponent > 0:
        raise RuntimeError(f"pow(): the exponent of a sparse tensor must be a positive number, got {exponent}")
    total = coalesced(input)
    return like(total, total._payload.values**exponent)


def _number(value: Any) -> Any:
    return dense(value) if isinstance(value, SparseTensor) else value


def _elements(tensor: Tensor, at: SparseTensor) -> Tensor:
    """Return the elements of a dense tensor, broadcast to the shape of a sparse one, at its positions."""
    return tensor.expand(at.shape)[tuple(at._payload.indices.unbind(0))]


# -- products of matrices ---------------------------------------------------------------------------------------------
@serves("matmul")
def matmul(input: Any, other: Any) -> Tensor:
    """Multiply matrices of which one or both are sparse; of two sparse ones, the product is sparse."""
    return multiplied(input, other)


@serves("addmm")
def addmm(input: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    product = multiplied(mat1, mat2)
    out: Tensor = (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)
    return out


# -- reductions -------------------------------------------------------------------------------------------------------
@serves("sum")
def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Sum over all dims, with a dense result, or over some, with a sparse one if a sparse dim remains."""
    shape, indices, values, _ = input._payload
    values = values if dtype is None else values.to(dtype)
    rank = indices.shape[0]
    if dim is None or not len(dim):
        total = values.sum()
        return total.reshape((1,) * len(shape)) if keepdim else total
    inner = tuple(d - rank + 1 for d in dim if d >= rank)
    values = values.sum(inner, keepdim) if inner else values
    kept = [d for d in range(rank) if d not in dim]
    if keepdim:
        indices = indices.masked_fill(indices.new_tensor([[d in dim] for d in range(rank)]).bool(), 0)
        return assembled(indices, values, [1 if d in dim else s for d, s in enumerate(shape)])
    remaining = [s for d, s in enumerate(shape) if d not in dim]
    if not kept:
        return values.sum(0)
    return assembled(indices.index_select(0, indices.new_tensor(kept)), values, remaining)


# -- positions --------------------------------------------------------------------------------------------------------
@serves("permute")
def permute(input: SparseTensor, dims: Sequence[int]) -> Tensor:
    """Permute the sparse dims among themselves, and the dense dims among themselves."""
    shape, indices, values, _ = input._payload
    rank = indices.shape[0]
    if sorted(dims[:rank]) != list(range(rank)):
        raise RuntimeError("permute(): a sparse dim of a sparse tensor cannot change places with a dense dim")
    if tuple(dims[rank:]) != tuple(range(rank, len(shape))):
        values = values.permute(0, *[d - rank + 1 for d in dims[rank:]])
    return assembled(indices.index_select(0, indices.new_tensor(dims[:rank])), values, [shape[d] for d in dims])


@serves("transpose")
def transpose(input: SparseTensor, dim0: int, dim1: int) -> Any:
    """Exchange two dims."""
    dims = list(range(input.ndim))
    dims[dim0], dims[dim1] = dim1, dim0
    return permute(input, dims)


@serves("t", "T")
def t(input: SparseTensor) -> Any:
    """Transpose a matrix."""
    return permute(input, list(range(input.ndim))[::-1])


@serves("unsqueeze")
def unsqueeze(input: SparseTensor, dim: int) -> Tensor:
    """Insert a dim of size 1."""
    shape, indices, values, known = input._payload
    rank = indices.shape[0]
    sizes = (*shape[:dim], 1, *shape[dim:])
    if dim > rank:
        return assembled(indices, values.unsqueeze(dim - rank + 1), sizes, known)
    zeros = indices.new_zeros((1, indices.shape[1]))
    return assembled(_cat([indices[:dim], zeros, indices[dim:]], 0), values, sizes, known)


@serves("select")
def select(input: SparseTensor, dim: int, index: int) -> Any:
    """Return the elements at one index of a dim: dense if it was the only sparse dim."""
    shape, indices, values, known = input._payload
    rank = indices.shape[0]
    sizes = (*shape[:dim], *shape[dim + 1 :])
    if dim >= rank:
        return assembled(indices, values.select(dim - rank + 1, index), sizes, known)
    here = (indices[dim] == index).nonzero()[:, 0]
    if rank == 1:
        return values[here].sum(0)
    rest = _cat([indices[:dim], indices[dim + 1 :]], 0)
    return assembled(rest.index_select(1, here), values[here], sizes, known)


@serves("basic_index")
def basic_index(input: Any, index: Sequence[Any]) -> Any:
    """Return the elements at an integer of each of the first dims."""
    if not all(isinstance(i, int) for i in index):
        raise NotImplementedError("a sparse tensor is only indexed by integers; use index_select() or to_dense()")
    for i in index:
        input = input.select(0, i)
    return input


@serves("index_select")
def index_select(input: SparseTensor, dim: int, index: Tensor) -> Any:
    """Return the elements at the given indices of a dim."""
    shape, indices, values, known = input._payload
    rank = indices.shape[0]
    sizes = (*shape[:dim], index.shape[0], *shape[dim + 1 :])
    if dim >= rank:
        return assembled(indices, values.index_select(dim - rank + 1, index), sizes, known)
    left, right = joined(indices[dim], index.to(indices.dtype))
    taken = indices.index_select(1, left)
    return assembled(_cat([taken[:dim], right[None], taken[dim + 1 :]], 0), values[left], sizes)


@serves("cat")
def cat(tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """Join sparse tensors along a sparse dim."""
    first = tensors[0]
    if not all(isinstance(t, SparseTensor) and t.sparse_dim() == first.sparse_dim() for t in tensors):
        raise RuntimeError("cat(): all tensors must be sparse, with equally many sparse dims")
    if dim >= first.sparse_dim():
        raise RuntimeError(f"cat(): sparse tensors are joined along sparse dims, got dim {dim}")
    start, indices = 0, []
    for tensor in tensors:
        here = tensor._payload.indices
        offset = here.new_tensor([[start if d == dim else 0] for d in range(here.shape[0])])
        indices.append(here + offset)
        start += tensor.shape[dim]
    sizes = (*first.shape[:dim], start, *first.shape[dim + 1 :])
    return assembled(_cat(indices, 1), _cat([t._payload.values for t in tensors], 0), sizes)


def _cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    out: Tensor = OPERATORS["cat"].canonical(tensors, dim)
    return out


def masked(input: Tensor, mask: SparseTensor) -> SparseTensor:
    """Return the elements of a dense tensor at the positions of a sparse one. See ``Tensor.sparse_mask``."""
    if tuple(input.shape) != tuple(mask.shape):
        raise RuntimeError(f"sparse_mask(): the mask has the shape {list(mask.shape)}, expected {list(input.shape)}")
    return like(mask, _elements(input, mask))


def group_softmax(input: SparseTensor, dim: int, log: bool) -> SparseTensor:
    """Return the softmax over the stored elements along a sparse dim; see ``candelabra.sparse.softmax``."""
    shape, indices, values, _ = coalesced(input)._payload
    rank = indices.shape[0]
    dim = dim % len(shape)
    if dim >= rank:
        inner = dim - rank + 1
        return assembled(indices, values.log_softmax(inner) if log else values.softmax(inner), shape, True)
    kept = [d for d in range(rank) if d != dim]
    sizes = [shape[d] for d in kept]
    groups = flat_positions(indices.index_select(0, indices.new_tensor(kept)), sizes)
    positions, inverse = groups.unique(return_inverse=True)
    count = positions.shape[0]
    index = inverse.reshape((-1, *(1,) * (values.ndim - 1))).expand(values.shape)
    low = values.new_full((count, *values.shape[1:]), float("-inf"))
    highest = low.scatter_reduce(0, index, values.detach(), "amax")
    shifted = values - highest[inverse]
    total = summed(shifted.exp(), inverse, count)[inverse]
    return assembled(indices, shifted - total.log() if log else shifted.exp() / total, shape, True)
