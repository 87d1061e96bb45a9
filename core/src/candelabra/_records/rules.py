"""Rules of shape, one per family. They run when a kernel has failed, and say what is wrong in the user's words.

A rule is called with the operator and its canonical arguments and returns the result's shape, or raises.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes, contiguous_strides, reduced_shape
from candelabra._records.schema import LIST

if TYPE_CHECKING:
    from candelabra._records.record import Operator

Shape = tuple[int, ...]


def shape_of(value: Any) -> Shape:
    """The shape of a tensor, or of what stands for one without its data; a scalar's is ``()``."""
    return tuple(getattr(value, "shape", ()))


def pointwise(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """All tensors broadcast together."""
    shapes = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if p.kind == LIST:
            shapes += [shape_of(t) for t in value]
        elif hasattr(value, "shape"):
            shapes.append(shape_of(value))
    return broadcast_shapes(*shapes)


pointwise.pointwise = True  # type: ignore[attr-defined]


def checked_pointwise(check: Callable[..., object]) -> Callable[..., Any]:
    """:func:`pointwise` of an operator that refuses some arguments: ``check(*arguments)`` raises what is wrong."""

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
        check(*args)
        return pointwise(op, args)

    rule.pointwise = True  # type: ignore[attr-defined]
    return rule


def reduction(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """``dim`` goes, or stays as 1 with ``keepdim``."""
    named = {p.name: value for p, value in zip(op.schema.parameters, args, strict=True)}
    dim = named.get("dim")
    dims = (dim,) if isinstance(dim, int) else dim
    return reduced_shape(shape_of(args[0]), dims, named.get("keepdim", False))


def like_input(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """The result has the first tensor's shape."""
    return shape_of(args[0])


def from_geometry(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """A view has the shape that its geometry computes; every geometry serves contiguous memory."""
    shape = shape_of(args[0])
    assert op.geometry is not None
    found: Shape = op.geometry(shape, contiguous_strides(shape), 0, *args[1:])[0]
    return found


def by(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator's own rule, as a function of its arguments by position."""

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
        return function(*args)

    rule.__name__ = function.__name__
    return rule


@by
def unchecked(*args: Any) -> None:
    """The kernel's own error says enough."""
    return None
