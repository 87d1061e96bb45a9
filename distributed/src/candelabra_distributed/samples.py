"""Calls of the collectives for the conformance suite, on the group of one rank.

The tests of this distribution compare the results of several ranks with those of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from candelabra_conformance.references import reference
from candelabra_conformance.samples import sample

SELF = "self"


def whole(*rest: Any) -> Callable[[Any], Iterator[Any]]:
    """Return a generator of tensors of all ranks, with the other arguments."""

    def tensors(t: Any) -> Iterator[Any]:
        yield sample(t(3, 5), *rest)
        yield sample(t(), *rest, kind="0-d")
        yield sample(t(0, 2), *rest, kind="zero-size")

    return tensors


def rows(*rest: Any) -> Callable[[Any], Iterator[Any]]:
    """Return a generator of tensors with one row, of the one rank."""

    def tensors(t: Any) -> Iterator[Any]:
        yield sample(t(1, 3, 5), *rest)
        yield sample(t(1), *rest, kind="length-1")
        yield sample(t(1, 0), *rest, kind="zero-size")

    return tensors


def too_many_rows(*rest: Any) -> Callable[[Any], Iterator[Any]]:
    """Return a generator of calls without rows, or with more rows than ranks."""

    def tensors(t: Any) -> Iterator[Any]:
        yield sample(t(), *rest, note="without rows")

    return tensors


def no_tensor(*rest: Any) -> Callable[[Any], Iterator[Any]]:
    """Return a generator of calls without a tensor."""

    def texts(t: Any) -> Iterator[Any]:
        yield sample("text", *rest, note="a text")

    return texts


def _same(x: Any, *_: Any) -> Any:
    return x


def _stacked(x: Any, *_: Any) -> Any:
    return x[np.newaxis]


def _row(x: Any, *_: Any) -> Any:
    return x[0]


_CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "c10d_all_reduce": (_same, whole, ("sum", SELF)),
    "c10d_reduce": (_same, whole, (0, "avg", SELF)),
    "c10d_broadcast": (_same, whole, (0, SELF)),
    "c10d_all_gather": (_stacked, whole, (1, SELF)),
    "c10d_gather": (_stacked, whole, (1, 0, SELF)),
    "c10d_reduce_scatter": (_row, rows, ("avg", SELF)),
    "c10d_scatter": (_row, rows, (0, SELF)),
    "c10d_all_to_all": (_same, rows, ([1], [1], SELF)),
}
"""For each operator its definition on one rank, the kind of its input, and the other arguments."""

SAMPLES: dict[str, dict[str, list[Any]]] = {}
for _name, (_definition, _kind, _rest) in _CALLS.items():
    reference(_name)(_definition)
    _mistakes = [no_tensor(*_rest), *([too_many_rows(*_rest)] if _kind is rows else [])]
    SAMPLES[_name] = {"inputs": [_kind(*_rest)], "mistakes": _mistakes}
