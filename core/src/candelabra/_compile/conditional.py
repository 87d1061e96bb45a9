"""``cond``: one of two functions, by the value of a tensor, without a break of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import Any
from candelabra._dispatch.tracing import note_break, tracer_here
from candelabra._keys import AUTOGRAD
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor
from candelabra.utils._pytree import tree_flatten, tree_unflatten


def cond(
    pred: bool | Tensor, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()
) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` is true, otherwise ``false_fn(*operands)``. As ``torch.cond``.

    ``pred`` is a bool or a tensor with one element. An eager call runs one of the functions. A compiled function, and
    one inside of ``vmap``, computes both and selects, so both must return tensors of the same shapes and dtypes and may
    not write to their arguments; what they compute is not part of a break. If the result requires grad, or a function
    draws random numbers, a compiled function runs in segments instead, so that one of them runs.

    Raises ``RuntimeError`` for another ``pred``, for functions or operands of other types, and for results that differ.
    """
    if not isinstance(pred, (bool, Tensor)) or (isinstance(pred, Tensor) and pred.numel() != 1):
        got = f"a tensor of shape {tuple(pred.shape)}" if isinstance(pred, Tensor) else type(pred).__name__
        raise RuntimeError(f"cond(): expected pred to be a bool or a tensor with one element, got {got}")
    if not (callable(true_fn) and callable(false_fn)):
        raise RuntimeError("cond(): expected two functions, true_fn and false_fn")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"cond(): expected operands to be a tuple, got {type(operands).__name__}")
    if isinstance(pred, Tensor) and (tracer_here() is not None or pred._instance.depth):
        found = _selected(pred, true_fn, false_fn, operands)
        if found is not None:
            return found
    return (true_fn if pred else false_fn)(*operands)


def _selected(pred: Tensor, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Return both results with the selected elements, or None after a break that makes the function run in segments."""
    tracer = tracer_here()
    given = [leaf for leaf in tree_flatten(operands)[0] if isinstance(leaf, Tensor)]
    versions = [leaf._counter[0] for leaf in given]
    drawn = 0 if tracer is None else len(tracer.draws)
    (left, shape), (right, other) = tree_flatten(true_fn(*operands)), tree_flatten(false_fn(*operands))
    if [leaf._counter[0] for leaf in given] != versions:
        raise RuntimeError("cond(): a function writes to an operand, expected functions without such effects")
    if shape != other or any(map(_differ, left, right)):
        raise RuntimeError(
            "cond(): expected both functions to return tensors of the same shapes and dtypes in one structure, got "
            f"{_kinds(left)} from true_fn and {_kinds(right)} from false_fn"
        )
    if tracer is not None and len(tracer.draws) != drawn:
        note_break("a function of cond() draws random numbers")
        return None
    if tracer is not None and any(leaf._keys & AUTOGRAD for leaf in (*left, *right)):
        note_break("the result of cond() requires grad")
        return None
    condition = pred.reshape(()) if pred.dtype.name == "bool" else pred.reshape(()) != 0
    return tree_unflatten([OPERATORS["where"].canonical(condition, a, b) for a, b in zip(left, right)], shape)


def _differ(a: Any, b: Any) -> bool:
    return not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.dtype is b.dtype)


def _kinds(leaves: list[Any]) -> str:
    return ", ".join(f"{x.dtype}{list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__ for x in leaves)


__all__ = ["cond"]
