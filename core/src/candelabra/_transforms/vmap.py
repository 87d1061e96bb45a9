"""``vmap``: a function of one example as a function of many, with one call of each operator for all of them.

Attribution: JAX's ``vmap`` and functorch's, whose arguments and errors these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from candelabra._annotations import Any, NamedTuple
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra._transforms import randomness as _  # noqa: F401 - sets the layer that serves random draws
from candelabra._transforms.batching import Batch
from candelabra._transforms.level import without_ended_levels
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_is_leaf, tree_unflatten

Dims = Any
"""An int, None, or a nested container of them."""


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return ``func`` for many examples at once: the examples are along a dim of the arguments and of the results.

    ``in_dims``: the dim of each argument that the examples are along, None for an argument that all share; an int for
    all of them, or a tuple whose structure is that of the arguments, in part or in full. ``out_dims``: the same for the
    results. Keyword arguments are shared. ``randomness``: whether random numbers in ``func`` are ``"different"`` or the
    ``"same"`` for all examples, or an ``"error"``. ``chunk_size``: the number of examples that run together, which
    limits the memory; by default all. As ``torch.vmap``.

    Raises ``ValueError`` for dims that do not fit the arguments or the results, and for different numbers of examples,
    ``RuntimeError`` if ``func`` reads the values of a tensor (``.item()``, ``if``), or draws with
    ``randomness="error"``.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = name_of(func)

    @wraps(func, assigned=("__module__", "__doc__"), updated=())
    def batched(*args: Any, **kwargs: Any) -> Any:
        if type(out_dims) is not int:
            _check_out_dims(name, out_dims)
        dims, leaves, spec, size = _examples(name, in_dims, args)
        call = VmapCall(func, name, size, dims, leaves, spec, out_dims, randomness, kwargs)
        if chunk_size is not None and chunk_size < size:
            return _in_chunks(call, chunk_size)
        return _run(call)

    batched.__name__ = batched.__qualname__ = f"vmap({name})"
    return batched


def name_of(func: Any) -> str:
    """Return a function's name for messages."""
    return str(getattr(func, "__name__", None) or repr(func))


# -- one call ---------------------------------------------------------------------------------------------------------
class VmapCall(NamedTuple):
    """A call of a function that vmap transforms: its arguments without containers, and the dim of each."""

    func: Callable[..., Any]
    name: str
    size: int
    dims: list[int | None]
    leaves: list[Any]
    spec: TreeSpec | None
    out_dims: Dims
    randomness: str
    kwargs: dict[str, Any]


def _run(call: VmapCall) -> Any:
    name, dims, leaves, spec, out_dims = call.name, call.dims, call.leaves, call.spec, call.out_dims
    fronts = [leaf if dim is None else to_front(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
    frame = Batch(call.size, call.randomness)
    frame.like = next(t for t, dim in zip(fronts, dims, strict=True) if dim is not None)
    with frame:
        inputs = [t if dim is None else frame.batch(t) for t, dim in zip(fronts, dims, strict=True)]
        found = call.func(*(inputs if spec is None else tree_unflatten(inputs, spec)), **call.kwargs)
        if isinstance(found, Tensor) and type(out_dims) is int and not out_dims:  # the usual case, without containers
            return frame.unbatched(without_ended_levels(found))
        results, out_spec = tree_flatten(found)
        outs = _flat_out_dims(name, found, out_spec, out_dims)
        unwrapped = [_result(name, frame, r, dim) for r, dim in zip(results, outs, strict=True)]
    placed = [t if not dim else _placed(t, dim) for t, dim in zip(unwrapped, outs, strict=True)]
    return placed[0] if out_spec.is_leaf() else tree_unflatten(placed, out_spec)


def to_front(tensor: Tensor, dim: int) -> Tensor:
    """Return a view with a dim moved to the front."""
    if not dim:
        return tensor
    order = [dim, *(d for d in range(len(tensor._payload.shape)) if d != dim)]
    found: Tensor = OPERATORS["permute"].canonical(tensor, tuple(order))
    return found


def _placed(tensor: Tensor, dim: int) -> Tensor:
    """Return a view with the first dim moved to ``dim``, which may be negative."""
    rank = len(tensor._payload.shape)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    order = list(range(1, rank))
    order.insert(dim % rank, 0)
    found: Tensor = OPERATORS["permute"].canonical(tensor, tuple(order))
    return found


def _result(name: str, frame: Batch, result: Any, dim: int | None) -> Any:
    """Return a result with all examples along its first dim, as a tensor of the level below."""
    if dim is None:
        if isinstance(result, Tensor) and result._keys & frame.instance.bit:
            payload = result._fresh()._payload
            if payload.batched:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            return payload.tensor
        return result
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. "
            "Did you mean to set out_dims= to None for output?"
        )
    return frame.unbatched(without_ended_levels(result))


# -- in chunks --------------------------------------------------------------------------------------------------------
def _in_chunks(call: VmapCall, chunk_size: int) -> Any:
    """Run the examples in chunks, and concatenate the results."""
    columns: list[list[Any]] = []
    out_spec = outs = None
    for start in range(0, call.size, chunk_size):
        count = min(chunk_size, call.size - start)
        leaves = [
            leaf if dim is None else leaf.narrow(dim, start, count)
            for leaf, dim in zip(call.leaves, call.dims, strict=True)
        ]
        found = _run(call._replace(size=count, leaves=leaves))
        results, out_spec = tree_flatten(found)
        outs = _flat_out_dims(call.name, found, out_spec, call.out_dims)
        columns.append(results)
    assert out_spec is not None
    assert outs is not None
    joined = [
        column[0] if dim is None else OPERATORS["cat"].function(list(column), dim)
        for column, dim in zip(zip(*columns, strict=True), outs, strict=True)
    ]
    return tree_unflatten(joined, out_spec)


# -- dims -------------------------------------------------------------------------------------------------------------
def _examples(
    name: str, in_dims: Dims, args: tuple[Any, ...]
) -> tuple[list[int | None], list[Any], TreeSpec | None, int]:
    """Return the dims (non-negative), the leaves and the structure of the arguments, and the number of examples.

    The structure is None if all arguments are tensors.
    """
    if type(in_dims) is int and not in_dims and all(isinstance(a, Tensor) and a._payload.shape for a in args):
        counts = {a._payload.shape[0] for a in args}
        if len(counts) == 1:  # the usual case; the others are checked below
            return [0] * len(args), list(args), None, counts.pop()
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = flat_dims(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    sizes = []
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = len(leaf._payload.shape)
        if not -rank <= dim < rank:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so "
                f"expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        dims[i] = dim % rank
        sizes.append(leaf._payload.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return dims, leaves, spec, sizes[0]


def flat_dims(dims: Dims, spec: TreeSpec) -> list[Any] | None:
    """Return one dim per leaf of a structure: a dim stands for all leaves below it. None if the structures differ."""
    if spec.is_leaf():
        return [dims] if tree_is_leaf(dims) else None
    if tree_is_leaf(dims):
        return [dims] * spec.num_leaves
    own = tree_flatten(dims, is_leaf=lambda value: value is not dims)
    children, outer = own
    if outer.type is not spec.type or outer.context != spec.context or len(children) != spec.num_children:
        return None
    found: list[Any] = []
    for child, below in zip(children, spec.children_specs, strict=True):
        part = flat_dims(child, below)
        if part is None:
            return None
        found += part
    return found


def _check_out_dims(name: str, out_dims: Dims) -> None:
    if out_dims is None or isinstance(out_dims, int):
        return
    leaves = tree_flatten(out_dims)[0]
    if isinstance(out_dims, Tensor) or not all(leaf is None or isinstance(leaf, int) for leaf in leaves):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )


def _flat_out_dims(name: str, result: Any, spec: TreeSpec, out_dims: Dims) -> Sequence[Any]:
    """Return one dim per result."""
    dims: Sequence[Any] | None
    if isinstance(result, Tensor):
        single = out_dims is None or isinstance(out_dims, int)
        dims = [out_dims] if single else out_dims if isinstance(out_dims, tuple) and len(out_dims) == 1 else None
    else:
        dims = flat_dims(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims
