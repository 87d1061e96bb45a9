"""Conversion of containers to JSON, and back."""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict, defaultdict, namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from candelabra._serialization.tree import MAX_DEPTH, decode, encode
from hypothesis import given
from hypothesis import strategies as st

from tests.core.serialization.fake_tensor import FakeTensor, floats

SAVES = "; save writes dicts, lists, tuples, numbers, strings, None and tensors"
Pair = namedtuple("Pair", "a b")


class Color(IntEnum):
    """A subclass of int."""

    RED = 1


class Shape(tuple[int, ...]):
    """A subclass of tuple without named fields."""


class Module:
    """An object with a state_dict."""

    def state_dict(self) -> None:
        """Return a state, as a module does."""


def _is_tensor(obj: object) -> bool:
    return isinstance(obj, FakeTensor)


def _there_and_back(obj: object) -> Any:
    node, tensors = encode(obj, _is_tensor)
    return decode(json.loads(json.dumps(node)), tensors.__getitem__)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.complex_numbers(allow_nan=False)
)
_keys = st.text(alphabet="ab$.#", max_size=3) | st.integers(-3, 3)
_trees = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(_keys, inner) | st.lists(inner).map(tuple), max_leaves=20
)


@given(_trees)
def test_what_goes_in_comes_out(obj: object) -> None:
    """Values, their types and the order of keys agree; repr distinguishes -0.0 from 0.0 and True from 1."""
    assert repr(_there_and_back(obj)) == repr(obj)


def test_floats_without_a_decimal_form_come_back() -> None:
    """JSON has no infinities and no NaN."""
    back = _there_and_back([math.nan, math.inf, -math.inf, complex(math.inf, -0.0), 2**64, -(10**5000), 10**5000])
    assert math.isnan(back[0])
    assert back[1:] == [math.inf, -math.inf, complex(math.inf, 0), 2**64, -(10**5000), 10**5000]
    assert math.copysign(1, back[3].imag) == -1


@pytest.mark.parametrize(
    ("obj", "plain"),
    [
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (Shape((2, 3)), (2, 3)),
        (Color.RED, 1),
        (np.float64(0.5), 0.5),
        (np.str_("s"), "s"),
        ({np.str_("k"): 1, True: 2}, {"k": 1, True: 2}),
    ],
)
def test_a_subclass_that_says_nothing_more_comes_back_plain(obj: object, plain: object) -> None:
    """The result is equal and has the base type, since a file stores only base types."""
    back = _there_and_back(obj)
    assert back == plain
    assert type(back) is type(plain)


def test_tensors_are_named_by_their_place_and_shared_by_identity() -> None:
    """An object that occurs twice is stored once and restored as one."""
    w, b = floats(1), floats(2)
    obj = {"model": {"w": w, "b": b}, "best": [(w,)], 3: b}
    node, tensors = encode(obj, _is_tensor)
    assert tensors == {"model.w": w, "model.b": b}
    assert decode(node, tensors.__getitem__) == obj
    assert encode(w, _is_tensor) == ({"$tensor": "tensor"}, {"tensor": w})


def test_names_are_unique_and_those_that_mean_something_are_avoided() -> None:
    """Different paths may give the same name; "" and "__metadata__" would be misread."""
    a, b, c, d, e, f = (floats(i) for i in range(6))
    obj = {"x.y": a, "x": {"y": b}, "": c, "__metadata__": d, "x.y#2": e, "\ud800": f}
    _, tensors = encode(obj, _is_tensor)
    assert tensors == {"x.y": a, "x.y#2": b, "#2": c, "__metadata__#2": d, "x.y#2#2": e, "\\ud800": f}
    assert _there_and_back(obj) == obj


def _cycle() -> list[object]:
    cycle: list[object] = [1]
    cycle.append({"self": cycle})
    return cycle


def _deep(depth: int) -> object:
    obj: object = 1
    for _ in range(depth):
        obj = [obj]
    return obj


@pytest.mark.parametrize(
    ("obj", "error", "message"),
    [
        (
            {"opt": {"hook": test_what_goes_in_comes_out}},
            TypeError,
            f"cannot save obj['opt']['hook']: a function{SAVES}",
        ),
        ([0, b"x"], TypeError, f"cannot save obj[1]: a bytes{SAVES} (a uint8 tensor can hold bytes)"),
        ((Module(),), TypeError, f"cannot save obj[0]: a Module{SAVES} (save its state_dict())"),
        (np.int64(1), TypeError, f"cannot save obj: an int64{SAVES} (convert it with its item())"),
        (np.ones(2), TypeError, f"cannot save obj: a ndarray{SAVES}"),
        (Pair(1, 2), TypeError, f"cannot save obj: a Pair{SAVES} (convert it with tuple(...))"),
        (defaultdict(list), TypeError, f"cannot save obj: a defaultdict{SAVES} (convert it with dict(...))"),
        ({1, 2}, TypeError, f"cannot save obj: a set{SAVES}"),
        ({"a": {(1, 2): 3}}, TypeError, "cannot save obj['a']: its key (1, 2) is a tuple; keys must be str, or int"),
        ({2**64: 1}, TypeError, "its key 18446744073709551616 is an int; keys must be str, or int of up to 64 bits"),
        (_cycle(), ValueError, "obj[1]['self']: it is one of the containers around it, so the nesting is infinite"),
        (_deep(MAX_DEPTH + 1), ValueError, f"[0]: containers are nested more than {MAX_DEPTH} deep"),
    ],
)
def test_what_is_not_written_is_named_with_its_path(obj: object, error: type[Exception], message: str) -> None:
    """The path can be appended to the object's name as code."""
    with pytest.raises(error, match=re.escape(message)):
        encode(obj, _is_tensor)


def test_the_deepest_nesting_comes_back() -> None:
    """The limit is the same for writing and reading."""
    assert _there_and_back(_deep(MAX_DEPTH)) == _deep(MAX_DEPTH)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (_deep(MAX_DEPTH + 2), f"containers are nested more than {MAX_DEPTH} deep"),
        ({"a": object()}, "an object is not a JSON value"),
        ({"$tuple": [], "b": 1}, "$tuple is combined with other keys"),
        ({"$new": 1}, "$new with an int is not known to this version"),
        ({"$tensor": 1}, "$tensor with an int is not known to this version"),
        ({"$tuple": {}}, "$tuple with a dict is not known to this version"),
        ({"$float": "1.5"}, "$float with a str is not known to this version"),
        ({"$complex": [1.0, "x"]}, "$complex with a list is not known to this version"),
        ({"$complex": [1.0]}, "$complex with a list is not known to this version"),
        ({"$int": "0xg"}, "invalid literal for int() with base 16: '0xg'"),
        ({"$dict": [[1]]}, "$dict contains items other than pairs"),
        ({"$dict": [[1, 2], [1, 3]]}, "$dict has a key that is an int, too long, or a duplicate"),
        ({"$dict": [[{"$int": hex(2**64)}, 2]]}, "$dict has a key that is an int, too long, or a duplicate"),
        ({"$dict": [[[], 2]]}, "$dict has a key that is a list, too long, or a duplicate"),
    ],
)
def test_a_document_that_save_does_not_write_is_refused(node: object, message: str) -> None:
    """Future versions and invalid files raise the same error."""
    with pytest.raises(ValueError, match=re.escape(message)):
        decode(node, lambda name: name)


def test_metadata_of_state_dicts_survive() -> None:
    """The attribute ``_metadata``, which has the versions of modules, is that of the loaded OrderedDict."""
    state: Any = OrderedDict({"layer.weight": 1.0})
    state._metadata = OrderedDict({"": {"version": 1}, "layer": {"version": 2}})
    loaded: Any = _there_and_back({"model": state})["model"]
    assert type(loaded) is OrderedDict
    assert loaded == state
    assert loaded._metadata == state._metadata
    assert type(_there_and_back(OrderedDict(a=1))) is dict


@pytest.mark.parametrize("value", [[[], {}], [{}, None]])
def test_damaged_metadata_of_state_dicts(value: Any) -> None:
    """Entries and metadata are dicts."""
    with pytest.raises(ValueError, match=r"\$state_dict has a dict of entries and one of metadata"):
        decode({"$state_dict": value}, lambda name: name)
