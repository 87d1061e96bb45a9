"""The class of sparse tensors, and the attributes that inspect them.

A sparse tensor has no memory of its own: its payload refers to two dense tensors, the indices and the values. Autograd
records operators of the values, so a sparse tensor requires grad if its values do, and its gradient has its indices.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._dispatch.layouts import register_layout
from candelabra._keys import DEVICE_SHIFT, LAYOUT_SHIFT
from candelabra._layout import layout as layout_type
from candelabra._layout import sparse_coo
from candelabra._overrides import disabled_torch_function
from candelabra._size import Size
from candelabra._tensor import Tensor, new
from candelabra.dtypes import DTYPE_MASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra._records.record import Operator

SPARSE_COO = 1 << LAYOUT_SHIFT
"""The key bit of sparse tensors in coordinate format."""
_KEPT = DTYPE_MASK | -(1 << DEVICE_SHIFT)
"""The key bits that a sparse tensor shares with its values: the dtype and the device."""


class Coordinates(NamedTuple):
    """The payload of a sparse tensor: element ``values[n]`` at the position ``indices[:, n]``.

    ``indices`` is int64, of shape (number of sparse dims, nnz); ``values`` has the shape (nnz, *dense dims). The sparse
    dims come first. ``coalesced``: the positions are sorted, and each occurs once.
    """

    shape: tuple[int, ...]
    indices: Tensor
    values: Tensor
    coalesced: bool


class SparseTensor(Tensor):
    """A sparse tensor in coordinate format; see :func:`candelabra.sparse_coo_tensor`.

    Elements at equal positions are added up. Operators without an implementation for sparse tensors raise
    ``NotImplementedError``; ``to_dense()`` returns a tensor that all operators take.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    _payload: Coordinates
    is_sparse = True  # a property of dense tensors
    __hash__ = object.__hash__

    @property
    def layout(self) -> layout_type:
        """The layout of the elements: ``candelabra.sparse_coo``."""
        return sparse_coo

    def sparse_dim(self) -> int:
        """Return the number of sparse dims, the rows of the indices."""
        return int(self._payload.indices.shape[0])

    def dense_dim(self) -> int:
        """Return the number of dense dims, those of one value."""
        return self._payload.values.ndim - 1

    def _nnz(self) -> int:
        """Return the number of stored elements."""
        return int(self._payload.values.shape[0])

    def _indices(self) -> Tensor:
        """Return the indices, also if they are not coalesced."""
        return self._payload.indices

    def _values(self) -> Tensor:
        """Return the values, also if they are not coalesced."""
        return self._payload.values

    def is_coalesced(self) -> bool:
        """Return whether the positions are sorted and each occurs once."""
        return self._payload.coalesced

    def indices(self) -> Tensor:
        """Return the indices, of shape (sparse dims, nnz). Raise ``RuntimeError`` unless they are coalesced."""
        self._require_coalesced("indices")
        return self._payload.indices

    def values(self) -> Tensor:
        """Return the values, of shape (nnz, *dense dims). Raise ``RuntimeError`` unless they are coalesced."""
        self._require_coalesced("values")
        return self._payload.values

    def _require_coalesced(self, name: str) -> None:
        if not self._payload.coalesced:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    def coalesce(self) -> SparseTensor:
        """Return the tensor with its positions sorted and the values at equal positions added up."""
        from candelabra._sparse.construction import coalesced

        return coalesced(self)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """Return the elements as a dense tensor. ``masked_grad`` is accepted and has no effect."""
        from candelabra._sparse.construction import dense

        out = dense(self)
        return out if dtype is None else out.to(dtype=dtype)

    def to_sparse(self, *_: Any, **__: Any) -> SparseTensor:
        """Return the tensor itself."""
        return self

    to_sparse_coo = to_sparse

    def stride(self, dim: int | None = None) -> Any:
        """Raise ``RuntimeError``: the elements have no strides."""
        raise RuntimeError("Sparse tensors do not have strides")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Raise ``RuntimeError``: the elements are in no order of memory."""
        raise RuntimeError("Sparse tensors do not have is_contiguous")

    # -- autograd -----------------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether operations on the values are recorded."""
        return self._payload.values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set in place whether operations on the values are recorded."""
        self._payload.values.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the values were created by the user and not by a recorded operator."""
        return self._payload.values.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node of the operator that computed the values; None for leaves."""
        return self._payload.values.grad_fn

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient at the positions of the tensor: a sparse tensor with the same indices, or None."""
        g = self._payload.values.grad
        return None if g is None else like(self, g)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._payload.values.grad = None
            return
        if not isinstance(value, SparseTensor) or value._nnz() != self._nnz() or value.shape != self.shape:
            raise RuntimeError("the gradient of a sparse tensor must be a sparse tensor with the same indices")
        self._payload.values.grad = value._payload.values

    @grad.deleter
    def grad(self) -> None:
        self._payload.values.grad = None

    def detach(self) -> Tensor:
        """Return the tensor with the same indices and values, which does not require grad."""
        return like(self, self._payload.values.detach(), self._payload.coalesced)

    def detach_(self) -> Tensor:
        """Detach the values from their graph in place."""
        self._become(self.detach())
        return self

    @property
    def data(self) -> Tensor:
        """The same indices and values, without history."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        self._become(value)

    def _become(self, other: Tensor) -> None:
        """Take the elements of another sparse tensor: every in-place operator of sparse tensors ends so."""
        if not isinstance(other, SparseTensor):
            raise RuntimeError("a dense tensor cannot be written into a sparse tensor; use the result out of place")
        self._payload, self._keys = other._payload, other._keys
        self._counter[0] += 1

    # -- Python's data model ------------------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        return bool(self.to_dense())

    def __repr__(self) -> str:
        indices, values = self._payload.indices, self._payload.values
        pad = "\n" + " " * 7
        lines = [f"indices={_indented(indices, 15)},", f"values={_indented(values.detach(), 14)},"]
        last = f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={self.layout!r}"
        if not self._instance.capabilities.host:
            last = f"device={str(self.device)!r}, {last}"
        if self.grad_fn is not None:
            last += f", grad_fn={self.grad_fn!r}"
        elif self.requires_grad:
            last += ", requires_grad=True"
        return f"tensor({pad.join([*lines, last])})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        from candelabra._sparse.construction import rebuilt

        shape, indices, values, known = self._payload
        return rebuilt, (indices, values, tuple(shape), known)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        import copy

        shape, indices, values, known = self._payload
        out = assembled(copy.deepcopy(indices, memo), copy.deepcopy(values, memo), shape, known)
        memo[id(self)] = out
        return out


def _indented(tensor: Tensor, columns: int) -> str:
    return repr(tensor).replace("\n", "\n" + " " * columns)


def assembled(indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False) -> SparseTensor:
    """Return a sparse tensor of indices and values that are known to fit; fewer than two elements are coalesced."""
    out: SparseTensor = new(SparseTensor)
    out._payload = Coordinates(Size(shape), indices, values, coalesced or values.shape[0] < 2)
    out._keys = (values._keys & _KEPT) | SPARSE_COO
    out._node = None
    out._counter = [0]
    return out


def like(tensor: SparseTensor, values: Tensor, coalesced: bool | None = None) -> SparseTensor:
    """Return a sparse tensor with the indices of another one."""
    shape, indices, _, known = tensor._payload
    return assembled(indices, values, shape, known if coalesced is None else coalesced)


def _operator(op: Operator[..., Any], inplace: bool) -> Callable[..., Any]:
    from candelabra._sparse.operators import sparse_operator

    return sparse_operator(op, inplace)


register_layout(SPARSE_COO, _operator)
