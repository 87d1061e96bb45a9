"""Extrema: the largest and the smallest elements over dims, and their indices. NaN is propagated."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.elementwise.comparison import maximum, minimum
from candelabra._operators.elementwise.selection import where
from candelabra._operators.reductions.sums import check_tangent_shape, expand_reduced
from candelabra._records.overloads import overloads
from candelabra._records.promotion import index, same
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of

if TYPE_CHECKING:
    from candelabra._annotations import Any
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, Dims, Tensor

PUBLIC_NAMES = {"max_dim": "max", "min_dim": "min"}
"""The names of the records of overload sets in error messages."""


def _extremum_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of a :func:`reduction`. Raise ``IndexError`` or ``RuntimeError`` if the reduced dims have no
    elements.
    """
    shape, dim = shape_of(args[0]), args[1]
    name = PUBLIC_NAMES.get(op.name, op.name)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None and 0 in shape:
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if op.name in ("argmax", "argmin"):
            raise IndexError(text)
        raise RuntimeError(f"{text} Specify the reduction dim with the 'dim' argument.")
    for d in dims or ():
        if shape and not shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    result: tuple[int, ...] = reduction(op, args)
    return result


def _extremum_shapes(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = _extremum_shape(op, args)
    return shape, shape


@operator(_extremum_shape, accepts="real")
def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the largest element over ``dim`` (all dims if empty); NaN if there is one. Ties share the gradient
    evenly.

    Raises ``IndexError`` if a dim of ``dim`` has size 0, and ``RuntimeError`` if ``dim`` is empty and ``input`` has no
    elements. Kernels have to raise an error in both cases.
    """
    ...


@operator(_extremum_shape, accepts="real")
def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """Return the smallest element over ``dim`` (all dims if empty); NaN if there is one. Ties share the gradient
    evenly.

    Raises ``IndexError`` if a dim of ``dim`` has size 0, and ``RuntimeError`` if ``dim`` is empty and ``input`` has no
    elements. Kernels have to raise an error in both cases.
    """
    ...


def _extremum_back(g: Tensor, input: Tensor, out: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    shape = tuple(input.shape)
    ties = input == expand_reduced(out, dim, keepdim, shape)
    return expand_reduced(g, dim, keepdim, shape) * ties / ties.sum(dim, True).to(g.dtype)


amax.vjp(input=_extremum_back)
amin.vjp(input=_extremum_back)


class ExtremumAlong(NamedTuple):
    """An extremum, and its derivative along a tangent."""

    extremum: Tensor
    slope: Tensor


@by
def _shapes_along(t_input: Tensor, input: Tensor, dim: Any, largest: bool, keepdim: bool) -> Any:
    check_tangent_shape("amax" if largest else "amin", t_input, input)
    shape = _extremum_shape(amax if largest else amin, (input, dim, keepdim))
    return shape, shape


@operator(_shapes_along, result=(same, same), accepts="real floating", method=False, public=False)
def extremum_along(
    t_input: Tensor, input: Tensor, dim: Dims = (), largest: bool = True, keepdim: bool = False
) -> ExtremumAlong:
    """Return :func:`amax` or :func:`amin`, and its derivative along ``t_input``: the mean of the tangents of all
    elements that attain the extremum.

    One operator for both, so that a device reads each tensor once.
    """
    _shapes_along(extremum_along, (t_input, input, dim, largest, keepdim))
    out = (amax if largest else amin)(input, dim, keepdim)
    ties = input == expand_reduced(out, dim or None, keepdim, tuple(input.shape))  # type: ignore[arg-type]
    total = where(ties, t_input, 0.0).sum(dim or None, keepdim)  # another element's tangent may be infinite
    return ExtremumAlong(out, total / ties.sum(dim or None, keepdim).to(total.dtype))


amax.jvp(lambda t_input, input, dim, keepdim: extremum_along.canonical(t_input, input, dim, True, keepdim), joint=True)
amin.jvp(lambda t_input, input, dim, keepdim: extremum_along.canonical(t_input, input, dim, False, keepdim), joint=True)


@operator(_extremum_shape, result=index, accepts="real")
def argmax(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first largest element along ``dim`` (of the flattened tensor if None), or of the first
    NaN.
    """
    ...


@operator(_extremum_shape, result=index, accepts="real")
def argmin(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first smallest element along ``dim`` (of the flattened tensor if None), or of the first
    NaN.
    """
    ...


argmax.no_gradient("the result is an index")
argmin.no_gradient("the result is an index")


class ValuesAndIndices(NamedTuple):
    """Elements along a dim, and their indices along it."""

    values: Tensor
    indices: Tensor


def _gathered(input: Tensor, dim: int, indices: Tensor, keepdim: bool) -> ValuesAndIndices:
    """Return the elements at ``indices``, one for each slice along ``dim``."""
    values = input.gather(dim, indices)
    return ValuesAndIndices(*((values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))))


@operator(_extremum_shapes, result=(same, index), accepts="real", out=True, public=False)
def max_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> ValuesAndIndices:
    """Return the largest element along ``dim`` and its first index."""
    return _gathered(input, dim, argmax(input, dim, True), keepdim)


@operator(_extremum_shapes, result=(same, index), accepts="real", out=True, public=False)
def min_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> ValuesAndIndices:
    """Return the smallest element along ``dim`` and its first index."""
    return _gathered(input, dim, argmin(input, dim, True), keepdim)


max = overloads("max", (amax, "input"), maximum, max_dim)
min = overloads("min", (amin, "input"), minimum, min_dim)


class Extrema(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


def _aminmax_shapes(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape, dim = shape_of(args[0]), args[1]
    if dim is None and 0 in shape:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity")
    if dim is not None and shape and not shape[dim]:
        raise IndexError(f"aminmax(): Expected reduction dim {dim} to have non-zero size.")
    reduced = reduction(op, args)
    return reduced, reduced


@operator(_aminmax_shapes, result=(same, same), accepts="real", out=True)
def aminmax(input: Tensor, *, dim: Dim | None = None, keepdim: bool = False) -> Extrema:
    """Return the smallest and the largest element along ``dim`` (over all dims if None) as a pair ``(min, max)``.

    Both are NaN if any element is NaN. Equal extrema share the gradient evenly. Raises ``RuntimeError`` for a tensor
    without elements, ``IndexError`` for a dim without any.
    """
    _aminmax_shapes(aminmax, (input, dim, keepdim))
    dims = None if dim is None else (dim,)
    return Extrema(amin(input, dims, keepdim), amax(input, dims, keepdim))
