"""The last resort of ``vmap``: call an operator for each example, and stack the results. Counted, with one warning."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable

from candelabra._annotations import Any, Final
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._transforms.user_line import users_line

counts: Final[Counter[str]] = Counter()
"""The number of calls of each operator that ran in a loop, in this process."""
_lock: Final = threading.Lock()


def looped(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return a batching rule that calls the operator for each example."""
    return _refusing(op) if op.data_dependent else one_by_one(op)


def one_by_one(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return :func:`looped` also for an operator whose results may have other shapes: then they are not stacked."""
    run = op.canonical
    several = op.schema.result is not None

    def rule(size: int, batched: list[Any], *args: Any) -> Any:
        _notice(op.name)
        results = [run(*_example(args, batched, i)) for i in range(size)]
        if several:
            return tuple([_stacked(column) for column in zip(*results, strict=True)])
        return _stacked(results)

    return rule


def _example(args: tuple[Any, ...], batched: list[Any], i: int) -> list[Any]:
    select: Any = OPERATORS["basic_index"].canonical

    def one(value: Any, marked: Any) -> Any:
        if isinstance(marked, list):
            return [one(v, m) for v, m in zip(value, marked, strict=True)]
        return select(value, (i,)) if marked else value

    return [one(value, marked) for value, marked in zip(args, batched, strict=True)]


def _stacked(tensors: Any) -> Any:
    return OPERATORS["stack"].canonical(tuple(tensors), 0)


def _refusing(op: Operator[..., Any]) -> Callable[..., Any]:
    def refuse(size: int, batched: list[Any], *args: Any) -> Any:
        raise RuntimeError(
            f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"{op.name}: the size of its result depends on the values of each example:{users_line()}"
        )

    return refuse


def _notice(name: str) -> None:
    with _lock:
        counts[name] += 1
        if counts[name] > 1:
            return
    warnings.warn(
        f"There is a performance drop because vmap has no batching rule for {name}: it is called for each example in "
        "a loop. This warning is shown once per operator",
        UserWarning,
        stacklevel=5,
    )
