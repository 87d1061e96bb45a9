"""Basic indexing: integers, slices and None select one view. The adjoint and the scatter write to that view."""

from __future__ import annotations

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._records.record import operator
from candelabra._records.registry import OPERATORS
from candelabra._records.rules import by, from_geometry, like_input
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra.typing import Shape, Tensor

BasicIndex = tuple[Any, ...]
"""Canonical: per dim of the input a non-negative int or a slice with non-negative start, stop and a positive step; dims
that are omitted at the end are selected whole. None inserts a dim of size 1."""


@operator(from_geometry, view=geometry.indexed_geometry, method=False, public=False)
def basic_index(input: Tensor, index: BasicIndex) -> Tensor:
    """``input[index]`` for ints, slices and None: one view, one node."""
    ...


@operator(by(lambda input, shape, index: shape), method=False, public=False)
def basic_index_adjoint(input: Tensor, shape: Shape, index: BasicIndex) -> Tensor:
    """Return zeros of ``shape`` with ``input`` written to ``[index]``."""
    out = new_full(input, shape, 0)
    if out._instance.immutable:
        return replaced(out, input, basic_index, index)
    basic_index(out, index).copy_(input)
    return out


@operator(like_input, method=False, public=False)
def basic_index_scatter(input: Tensor, src: Tensor, index: BasicIndex) -> Tensor:
    """Return a copy of ``input`` with ``src`` written to ``[index]``."""
    if input._instance.immutable:
        return replaced(input, src, basic_index, index)
    out = input.clone()
    basic_index(out, index).copy_(src)
    return out


basic_index.vjp(input=lambda g, input_spec, index: basic_index_adjoint(g, input_spec.shape, index))
basic_index.scattered(basic_index_scatter)
basic_index.summed(lambda total, g, node: basic_index.canonical(total, node.a_index).add_(g))
basic_index_adjoint.vjp(input=lambda g, index: basic_index(g, index))
basic_index_scatter.vjp(
    input=lambda g, src_spec, index: basic_index_scatter(g, basic_index(g, index) * 0, index),
    src=lambda g, index: basic_index(g, index),
)


def replaced(input: Tensor, src: Tensor, view: Any, *arguments: Any) -> Tensor:
    """Return ``input`` with the elements of ``view(input, *arguments)`` replaced by ``src``, without writing to arrays.

    The same view of a tensor of positions selects these elements.
    """
    positions = new_arange(input, 0, 1, input.numel(), dtype=int64).reshape(input.shape)
    selected = view(positions, *arguments)
    # By name: indexing by tensors is built on basic indexing.
    index_put = OPERATORS["index_put"]
    flat: Tensor = index_put(input.reshape(-1), (selected.reshape(-1),), src.expand(selected.shape).reshape(-1))
    return flat.reshape(input.shape)
