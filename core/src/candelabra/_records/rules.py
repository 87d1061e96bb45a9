"""Shape rules for groups of operators. They run when a kernel has failed, to describe invalid arguments.

A rule is called with the operator and its canonical arguments. It returns the shape of the result, or raises.
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
    """Return the shape of a tensor, or of an object with a shape but without data; ``()`` for a scalar."""
    payload = getattr(value, "_payload", None)
    return tuple(getattr(value, "shape", ())) if payload is None else payload.shape


def pointwise(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return the shape to which all tensors broadcast."""
    shapes = []
    for p, value in zip(op.schema.parameters, args, strict=True):
        if p.kind == LIST:
            shapes += [shape_of(t) for t in value]
        elif hasattr(value, "shape"):
            shapes.append(shape_of(value))
    return broadcast_shapes(*shapes)


pointwise.pointwise = True  # type: ignore[attr-defined]


def checked_pointwise(check: Callable[..., object]) -> Callable[..., Any]:
    """Return :func:`pointwise` with a check before it: ``check(*arguments)`` raises for invalid arguments."""

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
        check(*args)
        return pointwise(op, args)

    rule.pointwise = True  # type: ignore[attr-defined]
    return rule


def reduction(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return the shape without ``dim``, or with size 1 there if ``keepdim``."""
    named = {p.name: value for p, value in zip(op.schema.parameters, args, strict=True)}
    dim = named.get("dim")
    dims = (dim,) if isinstance(dim, int) else dim
    return reduced_shape(shape_of(args[0]), dims, named.get("keepdim", False))


def like_input(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return the shape of the first tensor."""
    return shape_of(args[0])


def from_geometry(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return the shape of a view, which its geometry computes as for contiguous memory."""
    shape = shape_of(args[0])
    assert op.geometry is not None
    found: Shape = op.geometry(shape, contiguous_strides(shape), 0, *args[1:])[0]
    return found


def by(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator's own rule from a function of its positional arguments."""

    def rule(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
        return function(*args)

    rule.__name__ = function.__name__
    return rule


@by
def unchecked(*args: Any) -> None:
    """The kernel's own error says enough."""
    return None


def normalized_dims(input: Any, sizes: Any, weight: Any, bias: Any) -> tuple[int, ...]:
    """Return the last dims, over which an operator normalizes.

    Raises ``RuntimeError`` unless their sizes, and those of weight and bias, are ``sizes``.
    """
    expected: tuple[int, ...] = sizes
    if not expected:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and shape_of(given) != expected:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(shape_of(given))} and normalized_shape = {list(expected)}"
            )
    shape = shape_of(input)
    first = len(shape) - len(expected)
    if first < 0 or shape[first:] != expected:
        raise RuntimeError(
            f"Given normalized_shape={list(expected)}, expected input with shape [*, {', '.join(map(str, expected))}], "
            f"but got input of size{list(shape)}"
        )
    return tuple(range(first, len(shape)))
