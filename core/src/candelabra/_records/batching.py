"""The grammar of batching rules: how an operator serves ``vmap`` where its record does not imply it.

A rule is declared by ``op.batched(rule)``. It gets the number of examples, one mark per argument, and the arguments:
the marked tensors have a batch dim in front, one tensor per example, and the others are the same for all. The functions
of this module return the rules of the usual kinds, and help to write others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import SHAPE, TENSOR_KINDS

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Rule = Callable[..., Any]
"""``rule(size, batched, *args)``, as described above; for a list of tensors, a mark is a list of marks. Every result
has the batch dim in front. NotImplemented means that the body serves the call."""
Marks = Sequence[Any]


# -- tensors with and without a batch dim -----------------------------------------------------------------------------
def expanded(tensor: Tensor, size: int) -> Tensor:
    """Return the tensor with a new first dim of a size, over the same memory."""
    expand: Any = OPERATORS["expand"].canonical
    found: Tensor = expand(tensor, (size, *tensor._payload.shape))
    return found


def aligned(tensor: Tensor, missing: int) -> Tensor:
    """Return a batched tensor with dims of size 1 behind its batch dim, so that it broadcasts with higher ranks."""
    if missing < 1:
        return tensor
    view: Any = OPERATORS["basic_index"].canonical
    found: Tensor = view(tensor, (slice(0, tensor._payload.shape[0], 1), *[None] * missing))
    return found


def all_batched(size: int, batched: Marks, tensors: Sequence[Any]) -> list[Any]:
    """Return the tensors with a batch dim in front of each."""
    return [t if marked else expanded(t, size) for t, marked in zip(tensors, batched, strict=False)]


def all_aligned(batched: Marks, tensors: Sequence[Any]) -> list[Any]:
    """Return the tensors so that they broadcast behind the batch dim; None and shared tensors are unchanged."""
    rank = max(rank_of(t, m) for t, m in zip(tensors, batched, strict=True) if t is not None)
    return [aligned(t, rank - rank_of(t, m)) if m else t for t, m in zip(tensors, batched, strict=True)]


def rank_of(tensor: Any, marked: Any) -> int:
    """Return the number of dims of one example."""
    return len(tensor._payload.shape) - bool(marked)


def moved(tensor: Tensor, source: int, destination: int) -> Tensor:
    """Return a view with one dim at another place."""
    if source == destination:
        return tensor
    order = [d for d in range(len(tensor._payload.shape)) if d != source]
    order.insert(destination, source)
    permute: Any = OPERATORS["permute"].canonical
    found: Tensor = permute(tensor, tuple(order))
    return found


def merged(tensor: Tensor, dim: int) -> Tensor:
    """Return a batched tensor without the batch dim: its examples are along dim ``dim`` of an example, one by one."""
    tensor = moved(tensor, 0, dim)
    shape = tensor._payload.shape
    return tensor.reshape((*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def split(tensor: Tensor, dim: int, size: int) -> Tensor:
    """Undo :func:`merged`."""
    shape = tensor._payload.shape
    parted = tensor.reshape((*shape[:dim], size, shape[dim] // max(size, 1), *shape[dim + 1 :]))
    return moved(parted, dim, 0)


# -- rules of the usual kinds -----------------------------------------------------------------------------------------
def in_front(op: Operator[..., Any]) -> Rule:
    """Return the rule of an operator that treats all leading dims alike: every tensor and shape gets the batch dim."""
    run = op.canonical
    shapes = [i for i, p in enumerate(op.schema.parameters) if p.kind == SHAPE]

    def rule(size: int, batched: Marks, *args: Any) -> Any:
        values = [
            expanded(a, size) if hasattr(a, "_payload") and not marked else a
            for a, marked in zip(args, batched, strict=True)
        ]
        for i in shapes:
            values[i] = (size, *values[i])
        return run(*values)

    return rule


def broadcasting(op: Operator[..., Any], whole: Sequence[str] = (), dims: str = "") -> Rule:
    """Return the rule of an operator whose tensors broadcast: batch dims are aligned in front.

    ``whole``: the tensors that get the batch dim in any case. ``dims``: the argument that lists dims of the first one.
    """
    run = op.canonical
    names = [p.name for p in op.schema.parameters]
    count = max(i for i, p in enumerate(op.schema.parameters) if p.kind in TENSOR_KINDS) + 1
    expands = [names.index(name) for name in whole]
    places = [i for i, name in enumerate(names) if name == dims]

    def rule(size: int, batched: Marks, *args: Any) -> Any:
        values, marks = list(args), list(batched)
        for i in expands:
            if not marks[i]:
                values[i], marks[i] = expanded(values[i], size), True
        values[:count] = all_aligned(marks[:count], values[:count])
        for i in places:
            values[i] = tuple([d + 1 for d in values[i]])
        return run(*values)

    return rule


def with_examples_along_dim_0(op: Operator[..., Any]) -> Rule:
    """Return the rule of an operator whose dim 0 is a batch itself: the two batch dims are merged."""
    run = op.canonical
    several = op.schema.result is not None
    shapes = [i for i, p in enumerate(op.schema.parameters) if p.kind == SHAPE]

    def rule(size: int, batched: Marks, *args: Any) -> Any:
        values = [
            merged(a if marked else expanded(a, size), 0) if hasattr(a, "_payload") else a
            for a, marked in zip(args, batched, strict=True)
        ]
        for i in shapes:
            values[i] = (size * values[i][0], *values[i][1:])
        out = run(*values)
        return tuple([split(o, 0, size) for o in out]) if several else split(out, 0, size)

    return rule
