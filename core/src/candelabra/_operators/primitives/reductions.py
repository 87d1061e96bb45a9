"""Reductions: sums, products, extremes."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.primitives.arithmetic import maximum, minimum
from candelabra._operators.primitives.creation import uncast
from candelabra._operators.primitives.views import expand, inverse
from candelabra._records.overloads import overloads
from candelabra._records.promotion import accumulated, boolean, index, same, to_float
from candelabra._records.record import operator
from candelabra._records.rules import reduction, shape_of
from candelabra.dtypes import FLOATING, PYTHON_NAMES, float32

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, Dims, DType, Tensor


def spread(x: Tensor, dim: tuple[int, ...] | None, keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    """A reduced tensor back over the dims that were reduced: the adjoint of a sum."""
    if dim is not None and not keepdim and shape:  # a 0-d tensor expands as it is
        kept = tuple(1 if dim is None or i in dim else s for i, s in enumerate(shape))
        x = x.view(kept)
    out: Tensor = expand.function(x, shape)
    return out


@operator(reduction, result=accumulated)
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over ``dim`` (all dims when None), pairwise or in a wider type. Integers and bools sum to int64.

    ``keepdim`` keeps the reduced dims with size 1; ``dtype`` casts the input first.
    """
    ...


def _sum_back(g: Tensor, input_spec: Any, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Tensor:
    if dtype is not None:
        g = uncast(g, input_spec)
    return spread(g, dim, keepdim, input_spec.shape)


sum.vjp(input=_sum_back)


def averaged(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The rule of the mean: as `reduction`, in a floating dtype."""
    dtype = args[3]
    if dtype is not None and dtype.category < FLOATING:
        raise RuntimeError(
            f"{op.name}(): could not infer output dtype. Optional dtype must be either a floating point or complex "
            f"dtype. Got: {PYTHON_NAMES[dtype.name]}"
        )
    found: tuple[int, ...] = reduction(op, args)
    return found


@operator(averaged, accepts="floating")
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The arithmetic mean over ``dim`` (all dims when None); NaN where nothing is averaged."""
    averaged(mean, (input, dim, keepdim, dtype))
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtype)
    if input.dtype.itemsize == 2:  # neither the sum nor the count may overflow
        return mean(input.to(float32), dim, keepdim).to(input.dtype)
    return sum(input, dim, keepdim) / count(input.shape, dim)


def _mean_back(g: Tensor, input_spec: Any, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    g = g / max(count(input_spec.shape, dim), 1)
    return spread(g if g.dtype is input_spec.dtype else g.to(input_spec.dtype), dim, keepdim, input_spec.shape)


mean.vjp(input=_mean_back)


def count(shape: tuple[int, ...], dim: Dims) -> int:
    """How many elements are reduced into one."""
    total = 1
    for i, size in enumerate(shape):
        if dim is None or i in dim:  # type: ignore[operator] # canonical: a tuple
            total *= size
    return total


@operator(reduction, result=accumulated)
def prod(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over ``dim`` (all dims when None). Integers and bools give int64."""
    ...


def _prod_back(g: Tensor, input: Tensor, dim: tuple[int, ...] | None, keepdim: bool, dtype: DType | None) -> Tensor:
    from candelabra._operators.primitives.joining import cat

    # The product of all the others, without dividing (zeros): products from the left times products from the right.
    x = input if dtype is None else input.to(dtype)
    rank = len(x.shape)
    dims = tuple(range(rank)) if dim is None else dim
    others = tuple(i for i in range(rank) if i not in dims)
    order = (*others, *dims)
    flat = x.permute(order).reshape([x.shape[i] for i in others] + [-1 if x.numel() else 0])
    n = flat.shape[-1]
    ones = flat.narrow(-1, 0, 1) * 0 + 1 if n else flat
    if n:
        left = cat([ones, flat.narrow(-1, 0, n - 1)], -1).cumprod(-1)
        right = cat([ones, flat.flip(-1).narrow(-1, 0, n - 1)], -1).cumprod(-1).flip(-1)
        flat = (left * right).conj()
    slope = flat.reshape([x.shape[i] for i in order]).permute(inverse(order))
    back = spread(g, dim, keepdim, tuple(x.shape)) * slope
    return back if back.dtype is input.dtype else back.to(input.dtype)


prod.vjp(input=_prod_back)


def reduced_to_one(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The rule of extremes: as `reduction`, and of no elements there is no largest one."""
    shape, dim = shape_of(args[0]), args[1]
    name = {"max_dim": "max", "min_dim": "min"}.get(op.name, op.name)
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is None and 0 in shape:
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if op.name in ("argmax", "argmin"):
            raise IndexError(text)
        raise RuntimeError(f"{text} Specify the reduction dim with the 'dim' argument.")
    for d in dims or ():
        if shape and not shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    found: tuple[int, ...] = reduction(op, args)
    return found


@operator(reduced_to_one, accepts="real")
def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The largest element over ``dim``; NaN where there is one. Ties share the gradient evenly."""
    ...


@operator(reduced_to_one, accepts="real")
def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The smallest element over ``dim``; NaN where there is one. Ties share the gradient evenly."""
    ...


def _extreme_back(g: Tensor, input: Tensor, out: Tensor, dim: tuple[int, ...] | None, keepdim: bool) -> Tensor:
    shape = tuple(input.shape)
    hits = input == spread(out, dim, keepdim, shape)
    share = hits.sum(dim, True).to(g.dtype)
    return spread(g, dim, keepdim, shape) * hits / share


amax.vjp(input=_extreme_back)
amin.vjp(input=_extreme_back)


@operator(reduction, result=boolean, public=False)
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements over ``dim`` are nonzero; True for none."""
    ...


@operator(reduction, result=boolean, public=False)
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element over ``dim`` is nonzero; False for none."""
    ...


@operator(reduced_to_one, result=index, accepts="real")
def argmax(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first largest element along ``dim`` (of the flattened tensor when None); NaN is largest."""
    ...


@operator(reduced_to_one, result=index, accepts="real")
def argmin(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """The index of the first smallest element along ``dim`` (of the flattened tensor when None); NaN is smallest."""
    ...


for _index in (all, any, argmax, argmin):
    _index.no_gradient("the result is an index or a truth value")


def _both_reduced(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = reduced_to_one(op, args)
    return shape, shape


class Extreme(NamedTuple):
    """The values and where they were found."""

    values: Tensor
    indices: Tensor


@operator(_both_reduced, result=(same, index), accepts="real", out=True, public=False)
def max_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> Extreme:
    """The largest element along ``dim`` and its (first) index."""
    indices = argmax(input, dim, True)
    values = input.gather(dim, indices)
    return Extreme(values, indices) if keepdim else Extreme(values.squeeze(dim), indices.squeeze(dim))


@operator(_both_reduced, result=(same, index), accepts="real", out=True, public=False)
def min_dim(input: Tensor, dim: Dim, keepdim: bool = False) -> Extreme:
    """The smallest element along ``dim`` and its (first) index."""
    indices = argmin(input, dim, True)
    values = input.gather(dim, indices)
    return Extreme(values, indices) if keepdim else Extreme(values.squeeze(dim), indices.squeeze(dim))


max = overloads("max", (amax, "input"), maximum, max_dim)
min = overloads("min", (amin, "input"), minimum, min_dim)


@operator(reduction, accepts="floating", public=False)
def var(input: Tensor, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The variance over ``dim``: squared distances from the mean, summed and divided by ``n - correction``."""
    if input.dtype.itemsize == 2:  # neither the sum of squares nor the count may overflow
        return var(input.to(float32), dim, correction=correction, keepdim=keepdim).to(input.dtype)
    n = count(input.shape, dim)
    distance = input - mean(input, dim, True)
    squares = (distance * distance.conj()).real if input.is_complex() else distance * distance
    return sum(squares, dim, keepdim) / max(n - correction, 0)


@operator(reduction, accepts="floating", public=False)
def std(input: Tensor, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> Tensor:
    """The standard deviation over ``dim``: the square root of :func:`var`."""
    return var(input, dim, correction=correction, keepdim=keepdim).sqrt()


@operator(reduction, promote=to_float, aliases=("special.logsumexp",))
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input)))`` over ``dim``, shifted by the maximum so that it neither overflows nor vanishes."""
    if not input.numel():
        return input.sum(dim, keepdim).log()
    top = amax(input.real, dim, True)
    top = top.masked_fill(top.abs() == float("inf"), 0.0)
    out = (input - top).exp().sum(dim, True).log() + top
    return out if keepdim else out.reshape(shape_of(sum(input, dim)))


logsumexp.vjp(
    input=lambda g, input, out, dim, keepdim: (
        spread(g, dim, keepdim, tuple(input.shape))
        * (input - spread(out, dim, keepdim, tuple(input.shape))).exp().conj()
    )
)
