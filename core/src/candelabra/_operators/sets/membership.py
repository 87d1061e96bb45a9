"""Membership of elements in a set: ``isin``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.creation.filled import new_full
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._operators.sorting.sort import ordered
from candelabra._records.promotion import boolean
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra._tensor import Tensor
from candelabra.dtypes import bool_

if TYPE_CHECKING:
    from candelabra.typing import Number

FEW = 10
"""The largest number of test elements that are each compared with all elements; more elements are sorted and searched.
"""


@operator(by(lambda elements, *_: shape_of(elements)), result=boolean, method=False, out=True)
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Return whether each of ``elements`` is in ``test_elements``, or with ``invert``, whether it is not. Either may be
    a number.

    NaN equals no element. ``assume_unique`` is accepted and has no effect.
    """
    if not isinstance(elements, Tensor):
        assert isinstance(test_elements, Tensor)
        result = (test_elements == elements).any()
    elif not isinstance(test_elements, Tensor):
        result = elements == test_elements
    else:
        result = _is_member(elements, test_elements.flatten())
    return result.logical_not() if invert else result


isin.no_gradient("the result is bool")


def _is_member(elements: Tensor, tests: Tensor) -> Tensor:
    count = tests.numel()
    if not count:
        return new_full(elements, tuple(elements.shape), False, dtype=bool_)
    if count <= FEW or elements.is_complex():
        return (elements.unsqueeze(-1) == tests).any(-1)
    members = ordered(tests, 0)
    indices = sorted_place(members, elements, False).clamp(max=count - 1)
    return members.take(indices) == elements
