"""The result of a compiled call: how each tensor is created from payloads, arguments and captured tensors."""

from __future__ import annotations

from collections import Counter

from candelabra._annotations import Any, NamedTuple
from candelabra._autograd.views import chain_from, chain_of, is_cut
from candelabra._compile.recording import Recorder
from candelabra._dispatch.key import redispatch
from candelabra._graph.structure import Value
from candelabra._keys import AUTOGRAD, VIEW
from candelabra._tensor import Tensor


class Same(NamedTuple):
    """The result is a tensor from outside itself."""

    value: Value


class Viewed(NamedTuple):
    """The result is a view of a tensor from outside, by a chain of view operators."""

    value: Value
    chain: list[tuple[Any, tuple[Any, ...]]]


class Alias(NamedTuple):
    """The result is another tensor over the memory of one from outside, with its version counter: ``x.detach()``.
    ``leaf``: as of :class:`New`.
    """

    value: Value
    keys: int
    leaf: int | None = None


class PartOfOutside(NamedTuple):
    """The result is another tensor over a part of the memory of one from outside, ``source``, with its version counter:
    ``x[0].detach()``.
    """

    value: Value
    keys: int
    source: Value
    leaf: int | None = None


class New(NamedTuple):
    """The result is a new tensor. ``shares``: the position of an earlier result with the same memory, or -1.
    ``differentiable``: it requires grad. ``leaf``: if it is a leaf that the function has created, the position of its
    gradient among the results, or -1.
    """

    value: Value
    keys: int
    shares: int
    differentiable: bool
    version: int = 0
    leaf: int | None = None
    refused: str | None = None
    """Why writes to it are errors, as to views that a custom operator returns."""


class ViewOfResult(NamedTuple):
    """The result is a view of another result, by a chain of view operators. The chain of the result itself is empty."""

    position: int
    chain: list[tuple[Any, tuple[Any, ...]]]


Result = Same | Viewed | Alias | PartOfOutside | New | ViewOfResult


def hidden_results(tensors: list[Tensor], recorder: Recorder) -> list[Tensor]:
    """Return the tensors that the program has to create besides the results.

    These are the gradients of leaves that the function has created, and tensors of which several results are views: a
    write to one of these changes the others, and their derivatives.
    """
    known = {id(tensor): tensor for tensor in (*recorder.external.values(), *tensors)}
    hidden: dict[int, Tensor] = {}
    views = Counter(id(tensor._base) for tensor in tensors if tensor._keys & VIEW and tensor._node is not None)
    for tensor in tensors:
        others = [tensor._grad] if _is_made_leaf(tensor, recorder) and tensor._grad is not None else []
        if tensor._keys & VIEW and views[id(tensor._base)] > 1:
            others.append(tensor._base)
        hidden.update({id(other): other for other in others if id(other) not in known})
    return list(hidden.values())


def _is_made_leaf(tensor: Tensor, recorder: Recorder) -> bool:
    return tensor._node in recorder.made_leaves


def results_of(tensors: list[Tensor], recorder: Recorder) -> list[Result]:
    """Return how to make each tensor of a result. What cannot be earlier is a break of the trace."""
    objects = {id(tensor): value for value, tensor in recorder.external.items()}
    cells = {id(tensor._counter): value for value, tensor in recorder.external.items()}
    first = {id(tensor): position for position, tensor in reversed([*enumerate(tensors)])}
    found: list[Result] = []
    earlier: list[tuple[int, Tensor]] = []
    for position, tensor in enumerate(tensors):
        tensor._fresh()
        if first[id(tensor)] < position:
            found.append(ViewOfResult(first[id(tensor)], []))
        elif _is_view_of(tensor, first) and id(tensor._base) not in objects:
            found.append(ViewOfResult(first[id(tensor._base)], chain_of(tensor)))
        else:
            found.append(_result(tensor, objects, cells, recorder, earlier, first))
            earlier.append((position, tensor))
    return found


def _is_view_of(tensor: Tensor, results: dict[int, int]) -> bool:
    """Return whether a tensor is a view of a result that its chain of view operators makes again."""
    if not tensor._keys & VIEW or id(tensor._base) not in results:
        return False
    recorded = tensor._base._node is None or tensor._node is not None  # else it was earlier under no_grad(), or cut off
    return recorded or is_cut(tensor)


def _result(
    tensor: Tensor,
    objects: dict[int, Value],
    cells: dict[int, Value],
    recorder: Recorder,
    earlier: list[tuple[int, Tensor]],
    positions: dict[int, int],
) -> Result:
    """Return how to make a tensor that is no view of a result. ``earlier``: those before it, with their positions."""
    if id(tensor) in objects:
        return Same(objects[id(tensor)])
    source, chain = chain_from(objects, tensor)
    if id(source) in objects:
        return Viewed(objects[id(source)], chain)
    value = recorder.value_of(tensor)
    if value is None or type(tensor) is not Tensor:
        recorder.note_break(f"the function returns a {type(tensor).__name__}, which is no plain tensor of a device")
        return New(Value(None), 0, -1, False)
    keys, differentiable, leaf = tensor._keys & ~(AUTOGRAD | VIEW), tensor._node is not None, None
    if _is_made_leaf(tensor, recorder):
        differentiable, leaf = False, positions.get(id(tensor._grad), -1)
    if recorder.external.get(value) is tensor:  # a tensor from outside that no kernel has read
        return Same(value)
    outside = cells.get(id(tensor._counter), value if value in recorder.external else None)
    if outside is not None:
        if differentiable:
            recorder.note_break("the function returns a part of a tensor from outside that is no view of it")
        if tensor._payload is not recorder.external[outside]._payload:
            return PartOfOutside(value, keys, outside, leaf)
        return Alias(outside, keys, leaf)
    shares = next((i for i, other in earlier if other._counter is tensor._counter), -1)
    return New(value, keys, shares, differentiable, tensor._counter[0], leaf, tensor._inplace_refused)


def replay(base: Tensor, chain: list[tuple[Any, tuple[Any, ...]]]) -> Tensor:
    """Return a view of a tensor by a chain of view operators."""
    for op, arguments in chain:
        base = redispatch(op, (base, *arguments))
    return base


__all__ = [
    "Alias",
    "New",
    "PartOfOutside",
    "Result",
    "Same",
    "ViewOfResult",
    "Viewed",
    "hidden_results",
    "replay",
    "results_of",
]
