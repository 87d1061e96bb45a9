"""Sizes per dim, and prefixes of states."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from candelabra.nn.common_types import _size_2_t
from candelabra.nn.modules.utils import (
    _list_with_default,
    _ntuple,
    _pair,
    _quadruple,
    _reverse_repeat_tuple,
    _single,
    _triple,
    consume_prefix_in_state_dict_if_present,
)


def test_a_size_is_repeated_and_a_sequence_is_kept() -> None:
    """_single to _quadruple repeat a number and keep any iterable, whatever its length."""
    assert [f(3) for f in (_single, _pair, _triple, _quadruple)] == [(3,), (3,) * 2, (3,) * 3, (3,) * 4]
    assert _pair([1, 2, 3]) == (1, 2, 3)
    assert _ntuple(6)(range(2)) == (0, 1)
    assert _pair.__name__ == "_pair"
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert _size_2_t == int | tuple[int, int]


def test_missing_sizes_come_from_the_defaults() -> None:
    """None takes the size of the dim; leading dims of the defaults are ignored."""
    assert _list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    assert _list_with_default(5, [1]) == 5
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        _list_with_default([None, 3], [7, 8])


def test_a_prefix_is_removed_from_keys_and_metadata() -> None:
    """Keys with the prefix lose it in place, and the wrapper's entry in the metadata gives way to its child's."""
    state: Any = OrderedDict({"module.a": 1, "b": 2, "module.c.d": 3})
    state._metadata = {"": 0, "module": 1, "module.c": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert dict(state) == {"a": 1, "b": 2, "c.d": 3}
    assert state._metadata == {"": 1, "c": 2}
    plain = {"module.a": 1}
    consume_prefix_in_state_dict_if_present(plain, "module.")
    assert plain == {"a": 1}
