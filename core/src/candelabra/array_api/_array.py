"""The arrays of this namespace: tensors with the operators and the indexing of the standard.

An :class:`Array` is a :class:`candelabra.Tensor`. The standard and PyTorch differ in three points: a 0-d operand takes
part in promotion like any other (in PyTorch it has a lower rank), a negative step in an index returns a copy (PyTorch
raises an error), and ``size`` is a number (in PyTorch it is a method, so the number can be called, too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, reduce
from math import inf

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import wrap_dim
from candelabra._namespace.publishing import BINARY, COMPARISONS, UNARY
from candelabra._operators.conversion.dtype_and_device import to_device
from candelabra._records.lookup import public_function
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra.dtypes import BOOL, FLOATING, INTEGER, int64, promote_types

if TYPE_CHECKING:
    from candelabra.typing import Device


class Count(int):
    """The number of elements of an array. A call, as in PyTorch's ``size()``, returns the shape or one of the sizes."""

    array: Tensor

    def __call__(self, dim: int | None = None) -> Any:
        return Tensor.size(self.array, dim)


class Array(Tensor):
    """A tensor that follows the Python Array API standard where that differs from PyTorch; see the module."""

    __slots__ = ()
    if TYPE_CHECKING:  # defined below, one per operator of Python's data model
        __eq__: Any
        __ne__: Any

    @property
    def size(self) -> Any:
        """The number of elements, which can also be called like PyTorch's method ``size()``."""
        count = Count(self.numel())
        count.array = self
        return count

    @property
    def T(self) -> Array:
        """The transpose of a matrix, a view. Raises ``ValueError`` unless there are two dims."""
        if self.ndim != 2:
            raise ValueError(f"T expects a matrix, and this array has {self.ndim} dims: use .mT or permute_dims")
        return arrayed(Tensor.transpose(self, 0, 1))

    @property
    def mT(self) -> Array:
        """The matrices in the last two dims transposed, a view. Raises ``ValueError`` if there are fewer than two."""
        if self.ndim < 2:
            raise ValueError(f"mT expects an array of at least 2 dims, not {self.ndim}")
        return arrayed(Tensor.transpose(self, -1, -2))

    def to_device(self, device: Device, /, *, stream: None = None) -> Array:
        """Return this array on ``device``, or itself if that is its device. Raises ``ValueError`` unless ``stream``
        is None.
        """
        return arrayed(to_device(self, device, stream=stream), self)

    def __complex__(self) -> complex:
        return complex(_scalar(self, "complex"))

    def __float__(self) -> float:
        return float(_scalar(self, "float"))

    def __int__(self) -> int:
        return int(_scalar(self, "int"))

    def __getitem__(self, key: Any) -> Array:
        """Return a view, or a copy if the key has an index array, a mask or a negative step."""
        key = _index(key, self)
        if _has_negative_step(key):
            view, dims, rest = _unreversed(self, key)
            return arrayed(Tensor.__getitem__(Tensor.flip(view, dims), rest))
        return arrayed(Tensor.__getitem__(self, key), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a number or an array that broadcasts, cast to this array's dtype."""
        key = _index(key, self)
        if not _has_negative_step(key):
            Tensor.__setitem__(self, key, value)
            return
        view, dims, rest = _unreversed(self, key)
        flipped = Tensor.flip(view, dims)
        Tensor.__setitem__(flipped, rest, value)
        view.copy_(Tensor.flip(flipped, dims))

    def __iter__(self) -> Iterator[Array]:
        return (arrayed(item) for item in Tensor.__iter__(self))

    def __imatmul__(self, other: Any) -> Array:  # type: ignore[misc]  # it writes in place; `@` returns a new array
        """Write ``self @ other`` into this array, which keeps its shape and dtype."""
        product = self @ other
        if product.shape != self.shape:
            raise ValueError(f"@= may not change the shape from {tuple(self.shape)} to {tuple(product.shape)}")
        self.copy_(product)
        return self

    __hash__ = Tensor.__hash__


# -- results ----------------------------------------------------------------------------------------------------------
@cache
def named(name: str) -> Callable[..., Any]:
    """Return the function ``candelabra.<name>``. Raise ``AttributeError`` if it does not exist."""
    function = public_function(name)
    if function is None:
        raise AttributeError(f"candelabra has no function {name!r}")
    return function  # type: ignore[no-any-return]


def arrayed(out: Tensor, *arguments: Any) -> Array:
    """Return the result of an operator as an :class:`Array`, without a copy and with its graph node.

    If ``out`` is one of the ``arguments`` of the caller, return a view of it, so that its class does not change.
    """
    if isinstance(out, Array):
        return out
    for tensor in arguments:
        if out is tensor:
            out = Tensor.__getitem__(out, ...)
    if type(out) is not Tensor:  # a user's subclass
        out = Tensor.__getitem__(out, ...)
    out.__class__ = Array
    return out  # type: ignore[return-value]


def promoted(*operands: Any) -> tuple[Any, ...]:
    """Cast the arrays among ``operands`` to their common dtype, independently of their ranks; keep Python numbers."""
    if len(operands) == 2 and getattr(operands[0], "dtype", None) is getattr(operands[1], "dtype", None):
        return operands
    dtypes = {x.dtype for x in operands if isinstance(x, Tensor)}
    if len(dtypes) < 2:
        return operands
    common = reduce(promote_types, dtypes)
    return tuple(x.to(common) if isinstance(x, Tensor) else x for x in operands)


def arrays_of(*operands: Any, name: str) -> None:
    """Raise ``TypeError`` unless at least one operand is an array."""
    if not any(isinstance(x, Tensor) for x in operands):
        raise TypeError(f"{name}() expects at least one array, got {', '.join(type(x).__name__ for x in operands)}")


def _scalar(x: Tensor, kind: str) -> Any:
    if x.ndim and x.numel() != 1:
        raise TypeError(f"{kind}() of an array expects one element, got {x.numel()}")
    value = x.item()
    if isinstance(value, complex) and kind != "complex":
        raise TypeError(f"{kind}() expects a real array, got a complex one: call real() first")
    return value


# -- indexing ---------------------------------------------------------------------------------------------------------
def _index(key: Any, x: Tensor) -> Any:
    """Convert a key for ``Tensor``: integer dtypes become int64, and an empty mask one that selects nothing."""
    if isinstance(key, tuple):
        return tuple(item.to(int64) if _is_narrow(item) else item for item in key)
    if isinstance(key, Tensor) and key.dtype.category == BOOL and key.ndim and not key.numel():
        whole = tuple(x.shape[: key.ndim])
        if key.ndim <= x.ndim and all(size in (0, of) for size, of in zip(key.shape, whole)):
            return named("zeros")(whole, dtype=key.dtype, device=key.device)
    return key.to(int64) if _is_narrow(key) else key


def _is_narrow(item: Any) -> bool:
    return isinstance(item, Tensor) and item.dtype.category == INTEGER and item.dtype is not int64


def _has_negative_step(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return any(isinstance(item, slice) and item.step is not None and item.step < 0 for item in items)


def _unreversed(x: Tensor, key: Any) -> tuple[Tensor, list[int], tuple[Any, ...]]:
    """Return a view of the slices with negative steps in ascending order, the dims to flip, and the remaining key."""
    items = list(key) if isinstance(key, tuple) else [key]
    indexed = sum(_indexed_dims(item) for item in items)
    before = [slice(None)] * x.ndim
    dims, left, dim = [], [], 0
    for item in items:
        if isinstance(item, slice) and item.step is not None and item.step < 0 and dim < x.ndim:
            before[dim] = _ascending(item, x.shape[dim])
            dims.append(dim)
            item = slice(None)
        left.append(item)
        dim += x.ndim - indexed if item is Ellipsis else _indexed_dims(item)
    return Tensor.__getitem__(x, tuple(before)), dims, tuple(left)


def _indexed_dims(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype.category == BOOL:
        return item.ndim
    return 1


def _ascending(item: slice, size: int) -> slice:
    """Return the slice of the same elements in ascending order."""
    indices = range(*item.indices(size))
    return slice(indices[-1], indices[0] + 1, -indices.step) if indices else slice(0, 0)


# -- operators --------------------------------------------------------------------------------------------------------
def floor_divided(x1: Any, x2: Any) -> Any:
    """Return ``x1 // x2``. With infinities it is ``floor(x1 / x2)``, as in the standard; PyTorch follows Python."""
    quotient = OPERATORS["floor_divide"].function(x1, x2)
    if quotient.dtype.category != FLOATING:
        return quotient
    infinite = [OPERATORS["isinf"].function(x) for x in (x1, x2) if isinstance(x, Tensor)]
    infinite += [x in (inf, -inf) for x in (x1, x2) if not isinstance(x, Tensor)]
    rounded = OPERATORS["floor"].function(OPERATORS["div"].function(x1, x2))
    return OPERATORS["where"].function(infinite[0] | infinite[1], rounded, quotient)


@cache
def form_of(name: str, form: str) -> Callable[..., Any]:
    """Return one form of an operator: ``"binary"``, ``"reflected"``, ``"assigned"``."""
    return OPERATORS[name].form(form)


def _binary(name: str, form: str) -> Callable[[Any, Any], Any]:
    """Return a method for one of Python's operators: the record's own form, on operands of one dtype."""

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, Tensor) and other.dtype is not self.dtype:
            common = promote_types(self.dtype, other.dtype)
            if form == "assigned":  # the array that is written to keeps its dtype
                other = other.to(self.dtype) if common is self.dtype else other
            else:
                self, other = self.to(common), other.to(common)
        out = form_of(name, form)(self, other)
        return out if out is NotImplemented else arrayed(out, self, other)

    return method


def _floor_division(form: str) -> Callable[[Any, Any], Any]:
    plain = _binary("floor_divide", form)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float)) or self.dtype.category != FLOATING:
            return plain(self, other)
        x1, x2 = promoted(self, other)
        out = floor_divided(x2, x1) if form == "reflected" else floor_divided(x1, x2)
        return arrayed(self.copy_(out) if form == "assigned" else out)

    return method


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return arrayed(OPERATORS[name].function(self), self)

    return method


def _attach(title: str, method: Callable[..., Any]) -> None:
    method.__name__, method.__qualname__ = title, f"Array.{title}"
    setattr(Array, title, method)


for _symbol, _name in BINARY.items():
    for _prefix, _form in (("", "binary"), ("r", "reflected"), ("i", "assigned")):
        if _prefix + _symbol != "imatmul":
            _method = _floor_division(_form) if _symbol == "floordiv" else _binary(_name, _form)
            _attach(f"__{_prefix}{_symbol}__", _method)
for _symbol, _name in COMPARISONS.items():
    _attach(f"__{_symbol}__", _binary(_name, "binary"))
for _symbol, _name in UNARY.items():
    _attach(f"__{_symbol}__", _unary(_name))


def axes_of(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Return ``axis`` as a tuple of dims counted from the front; None means all."""
    if axis is None:
        return tuple(range(rank))
    return tuple(wrap_dim(a, rank) for a in (axis if isinstance(axis, tuple) else (axis,)))
