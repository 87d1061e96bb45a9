"""Copies of tensors, and copies into tensors: clone, copy_."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._interchange.nested import fitted
from candelabra._keys import DEVICE_SHIFT
from candelabra._layout import expanded_shape, physical_order
from candelabra._operators.conversion.dtype_and_device import converted
from candelabra._operators.creation.filled import new_full, zeroed
from candelabra._operators.shapes.permuting import inverse_permutation, permute
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._layout import memory_format
    from candelabra.typing import Number


# -- clone ------------------------------------------------------------------------------------------------------------
@operator(like_input, out=False, public=False, elementwise=True)
def clone(input: Tensor) -> Tensor:
    """Return a copy in new memory, in C order. Autograd records it."""
    ...


clone.vjp(input=lambda g: g)


def clone_in_order(input: Tensor, order: Sequence[int]) -> Tensor:
    """Return a copy whose memory order of dims is ``order``, the outermost first."""
    return permute.function(clone.function(permute.function(input, order)), inverse_permutation(order))


@public(public=False, elementwise=True)
def clone_in_format(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Return a copy in new memory, in the memory order that ``memory_format`` requests."""
    order = physical_order(input.ndim, memory_format)
    return clone.function(input) if order is None else clone_in_order(input, order)


clone_overloads = overloads("clone", clone, clone_in_format)


# -- writing into a tensor --------------------------------------------------------------------------------------------
@by
def _expanded_to_input(input: Tensor, value: Any) -> tuple[int, ...]:
    return expanded_shape(shape_of(value), shape_of(input))


@operator(_expanded_to_input, inplace=True, public=False)
def copied(input: Tensor, src: Tensor) -> Tensor:
    """Return ``src`` broadcast to the shape of ``input``: the content of ``input`` after ``input.copy_(src)``."""
    return src.expand(input.shape).clone()


copied.vjp(input=lambda g: zeroed(g), src=lambda g: g)


@operator(_expanded_to_input, inplace=True, public=False)
def filled(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return the content of ``input`` after ``input.fill_(value)``; ``value`` is a number or a 0-d tensor."""
    if isinstance(value, Tensor):
        return value.expand(input.shape).clone()
    return new_full.function(input, tuple(input.shape), value)


filled.vjp(input=lambda g: zeroed(g), value=lambda g: g.sum())

DTYPE_AND_DEVICE = DTYPE_MASK | (-1 << DEVICE_SHIFT)
"""The bits of a key that encode dtype and device."""


@public(is_function=False, guarded=False, elementwise=True)
def copy_(input: Tensor, src: Tensor | Number, non_blocking: bool = False) -> Tensor:
    """Write ``src``, a tensor or a number, into this tensor. It is broadcast, cast and moved to its device as needed;
    autograd records it.
    """
    if non_blocking is not False and non_blocking is not True:
        raise TypeError(f"copy_(): argument 'non_blocking' must be bool, not {kind_of(non_blocking)}")
    if not isinstance(src, Tensor):
        if isinstance(src, (bool, int, float, complex)):
            return filled.form("inplace")(input, fitted(src, input.dtype))
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {kind_of(src)}")
    if src is input:
        return input
    if (src._keys ^ input._keys) & DTYPE_AND_DEVICE:
        elsewhere = (src._keys ^ input._keys) >> DEVICE_SHIFT
        src = converted(src, input.dtype, input._instance if elsewhere else None)
    return copied.form("inplace")(input, src)
