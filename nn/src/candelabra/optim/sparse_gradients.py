"""Sparse gradients: where optimizers find their elements, and the error of those that need dense ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from candelabra import Tensor

__all__ = ["refuse_sparse", "stored_elements"]


def refuse_sparse(message: str, parameters: Iterable[Any]) -> None:
    """Raise ``RuntimeError`` with this message if a parameter has a sparse gradient."""
    kinds = set()
    for p in parameters:
        kind = p._grad.__class__, p._grad._keys
        if kind not in kinds:  # the property is a function, and most gradients are of one kind
            kinds.add(kind)
            if p._grad.is_sparse:
                raise RuntimeError(message)


def stored_elements(gradient: Any, *dense: Tensor) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
    """Return positions, the gradient's values there, and the dense tensors in the form that the positions index.

    A gradient without sparse dims has no positions; its one value then belongs to row 0 of an added first dim.
    """
    gradient = gradient.coalesce()
    indices, values = gradient.indices(), gradient.values()
    if len(indices):
        return tuple(indices.unbind(0)), values, dense
    return (indices.new_zeros(len(values)),), values, tuple(t.unsqueeze(0) for t in dense)


def __dir__() -> list[str]:
    return sorted(__all__)
