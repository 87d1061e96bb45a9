"""Collation of items into batches."""

from __future__ import annotations

import re
from collections import OrderedDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, overload

import candelabra as cd
import numpy as np
import pytest
from candelabra.utils.data import default_collate, default_convert
from candelabra.utils.data._utils.collate import collate, default_collate_fn_map

Pair = namedtuple("Pair", "x y")


class ReadOnly(Mapping[str, Any]):
    """A mapping without methods that change it."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def __iter__(self) -> Any:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)


class Unmakeable(ReadOnly):
    """A mapping whose constructor takes two arguments."""

    def __init__(self, content: Mapping[str, Any], other: int) -> None:
        super().__init__(content)


class Letters(Sequence[int]):
    """A sequence whose constructor takes two arguments."""

    def __init__(self, first: int, second: int) -> None:
        self.items = [first, second]

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return 2


def plain(value: Any) -> Any:
    """Tensors as (dtype, values), in containers of the same types."""
    if isinstance(value, cd.Tensor):
        return value.dtype.name, value.tolist()
    if isinstance(value, Mapping):
        return type(value).__name__, {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple, deque, UserList)):
        return type(value).__name__, [plain(v) for v in value]
    return value


NESTED = ("list", [("int64", [1]), ("tuple", ["s"])])
# What PyTorch 2.13 returns for each batch, as `plain` shows it.
COLLATED: list[tuple[Any, Any]] = [
    ([1], ("int64", [1])),
    ([1.0, 2.0], ("float64", [1, 2])),
    ([True], ("bool", [True])),
    (["a", "b"], ("list", ["a", "b"])),
    ([b"a"], ("list", [b"a"])),
    ([np.float32(1), np.float32(2)], ("float32", [1, 2])),
    ([np.float64(1)], ("float64", [1])),
    ([np.bool_(1)], ("bool", [True])),
    ([np.int8(1)], ("int8", [1])),
    ([np.str_("a")], ("list", ["a"])),
    ([np.zeros(2), np.ones(2)], ("float64", [[0, 0], [1, 1]])),
    ([np.zeros((), "int16")], ("int16", [0])),
    ([(1, 2), (3, 4)], ("list", [("int64", [1, 3]), ("int64", [2, 4])])),
    ([[1, 2], [3, 4]], ("list", [("int64", [1, 3]), ("int64", [2, 4])])),
    ([range(2), range(2)], ("list", [("int64", [0, 0]), ("int64", [1, 1])])),
    ([deque([1, 2])], ("deque", [("int64", [1]), ("int64", [2])])),
    ([Pair(1, 2), Pair(3, 4)], ("Pair", [("int64", [1, 3]), ("int64", [2, 4])])),
    ([{"a": 1}, {"a": 2}], ("dict", {"a": ("int64", [1, 2])})),
    ([OrderedDict(a=1)], ("OrderedDict", {"a": ("int64", [1])})),
    ([defaultdict(int, a=1)], ("defaultdict", {"a": ("int64", [1])})),
    ([{"a": [{"b": (1, "s")}]}], ("dict", {"a": ("list", [("dict", {"b": NESTED})])})),
    ([{}, {}], ("dict", {})),
    ([(), ()], ("list", [])),
    ([ReadOnly({"a": 1})], ("ReadOnly", {"a": ("int64", [1])})),
    ([Unmakeable({"a": 1}, 2)], ("dict", {"a": ("int64", [1])})),
    ([Letters(1, 2)], ("list", [("int64", [1]), ("int64", [2])])),
]  # fmt: skip


@pytest.mark.parametrize(("batch", "expected"), COLLATED)
def test_batches_are_collated_as_by_pytorch(batch: Any, expected: Any) -> None:
    """Numbers and arrays become tensors, strings a list; containers are collated elementwise and keep their types."""
    assert plain(default_collate(batch)) == expected


def test_tensors_are_stacked() -> None:
    """Tensors are stacked along a new first dim; a defaultdict keeps its factory."""
    assert default_collate([cd.ones(2), cd.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert default_collate([defaultdict(int, a=1)])["missing"] == 0


def test_conversion_keeps_everything_but_arrays() -> None:
    """default_convert makes tensors of arrays and NumPy's scalars, and keeps the types of containers."""
    kept = default_convert({"a": np.ones(2), "b": ["s", 1], "p": Pair(np.zeros(1), b"x"), "f": np.float32(2)})
    assert plain(kept["a"]) == ("float64", [1, 1])
    assert kept["b"] == ["s", 1]
    assert kept["p"].x.tolist() == [0]
    assert isinstance(kept["p"], Pair)
    assert plain(kept["f"]) == ("float32", 2)
    tensor, text = cd.ones(1), np.array(["a"])
    assert default_convert(tensor) is tensor
    assert default_convert(text) is text
    assert default_convert(np.str_("a")) == "a"
    assert default_convert((1, None)) == [1, None]
    assert plain(default_convert(OrderedDict(a=np.int8(1)))) == ("OrderedDict", {"a": ("int8", 1)})
    assert plain(default_convert(deque([np.int8(1)]))) == ("deque", [("int8", 1)])
    assert plain(default_convert(UserList([np.int8(1)]))) == ("UserList", [("int8", 1)])
    assert default_convert(range(2)) == [0, 1]


def test_programs_extend_the_map_of_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of the map serves its type and subclasses; collate without a map serves containers only."""

    class Name(str):
        __slots__ = ()

    def joined(batch: Any, *, collate_fn_map: Any = None) -> str:
        assert collate_fn_map is default_collate_fn_map
        return "+".join(batch)

    monkeypatch.setitem(default_collate_fn_map, Name, joined)
    assert default_collate([(Name("a"), 1), (Name("b"), 2)])[0] == "a+b"
    assert collate([["x"], ["y"]], collate_fn_map={str: lambda batch, collate_fn_map: len(batch)}) == [2]
    monkeypatch.setitem(default_collate_fn_map, cd.Tensor, lambda batch, collate_fn_map: len(batch))
    assert default_collate([np.zeros(2)] * 3) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: default_collate([1j]), TypeError, "dicts or lists; found <class 'complex'>"),
        (lambda: default_collate([None]), TypeError, "dicts or lists; found <class 'NoneType'>"),
        (lambda: default_collate([{1, 2}]), TypeError, "dicts or lists; found <class 'set'>"),
        (lambda: default_collate([np.array(["a"])]), TypeError, "dicts or lists; found <U1"),
        (lambda: default_collate([np.array(None)]), TypeError, "dicts or lists; found object"),
        (lambda: default_collate([]), IndexError, "list index out of range"),
        (lambda: default_collate([{"a": 1}, {"b": 1}]), KeyError, "a"),
        (lambda: default_collate([[1], [1, 2]]), RuntimeError, "each element in list of batch should be of equal size"),
        (
            lambda: default_collate([np.ones(2), np.ones(3)]),
            RuntimeError,
            "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
        ),
    ],
)
def test_misuse_of_collation_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong batch raises PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        call()
