"""Compute the key of a call from its arguments. Slower than the generated entries, and only used on slow paths."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance
from candelabra._keys import SCALAR_BITS, SCALAR_FIRST, state
from candelabra._records.schema import BOUND, INDEX, INDICES, LIST, MASK, OPERAND, OPTIONAL, TENSOR
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def key_of(op: Operator[..., Any], args: tuple[Any, ...]) -> int:
    """Return the key that an entry would compute for these (canonical, positional) arguments."""
    key = state.bits
    first = True
    for p, value in zip(op.schema.parameters, args, strict=True):
        if p.kind == OPERAND:
            if isinstance(value, Tensor):
                key |= value._keys
            else:
                key |= SCALAR_BITS[type(value)] | (SCALAR_FIRST if first else 0)
            first = False
        elif value is None:
            continue
        elif p.kind in (TENSOR, OPTIONAL):
            key |= value._keys
        elif p.kind == BOUND:
            key |= getattr(value, "_keys", 0)
        elif p.kind in (INDEX, MASK):
            key |= value._keys & ~DTYPE_MASK
        elif p.kind == LIST:
            for tensor in value:
                key |= tensor._keys
        elif p.kind == INDICES:
            for tensor in value:
                key |= 0 if tensor is None else tensor._keys & ~DTYPE_MASK
        elif isinstance(value, Instance):
            key |= value.bit
    return key


def redispatch(op: Operator[..., Any], args: tuple[Any, ...], inplace: bool = False) -> Any:
    """Dispatch the operator again with positional, canonical arguments."""
    table = op.inplace_table if inplace else op.table
    return table[key_of(op, args)](*args)


def map_tensors(op: Operator[..., Any], args: tuple[Any, ...], function: Callable[[Any, str], Any]) -> tuple[Any, ...]:
    """Return ``args`` with every tensor replaced by ``function(tensor, kind)``."""
    mapped = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if isinstance(value, Tensor):
            mapped.append(function(value, p.kind))
        elif p.kind in (LIST, INDICES):
            mapped.append(tuple(None if t is None else function(t, p.kind) for t in value))
        else:
            mapped.append(value)
    return tuple(mapped)
