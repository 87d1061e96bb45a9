"""Files with whole modules: the objects that load returns, allowed classes, damaged and malicious files."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, serialization
from candelabra.nn import functional as F
from candelabra.serialization import FileFormatError, add_safe_globals, clear_safe_globals, get_safe_globals
from hypothesis import given
from hypothesis import strategies as st


class Options:
    """Data of a program."""

    def __init__(self, size: int) -> None:
        self.size = size


class Net(nn.Module):
    """A module of a program, with attributes of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.again = self.first
        self.second = nn.Linear(3, 2)
        self.act = F.relu
        self.kind = nn.ReLU
        self.names = {"a", "b"}
        self.options = {"shape": (1, 2), "dtype": cd.float16, "device": cd.device("cpu")}
        self.register_buffer("shift", cd.ones(2))
        self.register_buffer("hidden", cd.zeros(1), persistent=False)
        self.tensor = cd.arange(3)

    def forward(self, x: cd.Tensor) -> cd.Tensor:
        return self.second(self.act(self.first(x))) + self.shift


@pytest.fixture(autouse=True)
def _no_class_stays_allowed() -> Iterator[None]:
    yield
    clear_safe_globals()


def written(obj: object) -> bytes:
    """Return the bytes of a file."""
    f = io.BytesIO()
    cd.save(obj, f)
    return f.getvalue()


def back(obj: object) -> Any:
    """Write and load an object."""
    return cd.load(io.BytesIO(written(obj)))


def header(data: bytes) -> dict[str, Any]:
    """Return the header of a file."""
    return dict(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]))


def with_tree(tree: object) -> io.BytesIO:
    """Return a file without tensors with a given tree."""
    note = json.dumps({"version": 1, "tree": tree, "tensors": {}})
    text = json.dumps({"__metadata__": {"candelabra": note}}).encode()
    return io.BytesIO(len(text).to_bytes(8, "little") + text)


LAYERS = nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1))


def test_modules_of_candelabra_come_back() -> None:
    """Classes, modes, parameters and buffers are as they were, and the results too."""
    model = LAYERS.eval()
    found = back({"model": model, "epoch": 3})["model"]
    assert repr(found) == repr(model)
    assert type(found[0].weight) is nn.Parameter
    assert not found[1].training
    x = cd.rand(2, 3, 5, 5)
    assert (found(x) == model(x)).all().item()
    assert list(found.state_dict()) == list(model.state_dict())


def test_tensors_of_a_module_have_the_names_of_its_state() -> None:
    """Other readers of safetensors see the keys of the state_dict."""
    names = set(header(written(LAYERS))) - {"__metadata__"}
    assert names == set(LAYERS.state_dict())


def test_a_class_of_the_program_must_be_allowed() -> None:
    """Without that, load raises an error that says how; the file contains its name and no code."""
    data = written(Net())
    with pytest.raises(FileFormatError, match=r"class \S*Net. load\(\) rebuilds classes of candelabra.nn, and those"):
        cd.load(io.BytesIO(data))
    with serialization.safe_globals([Net]):
        assert get_safe_globals() == [Net]
        found = cd.load(io.BytesIO(data))
    assert get_safe_globals() == []
    assert found.again is found.first
    assert found.act is F.relu
    assert found.kind is nn.ReLU
    assert found.names == {"a", "b"}
    assert found.options == {"shape": (1, 2), "dtype": cd.float16, "device": cd.device("cpu")}
    assert found.tensor.tolist() == [0, 1, 2]
    assert list(found.state_dict()) == list(Net().state_dict())
    assert found(cd.ones(1, 2)).shape == (1, 2)


def test_safe_globals_as_in_pytorch() -> None:
    """Classes are added, listed and cleared; a moved class is allowed under its name in the file."""
    add_safe_globals([Net, (Options, "old.Options")])
    assert get_safe_globals() == [Net, (Options, "old.Options")]
    with serialization.safe_globals([Options]):
        assert len(get_safe_globals()) == 3
    clear_safe_globals()
    assert get_safe_globals() == []
    for wrong in (3, "Net", (Net, 3)):
        with pytest.raises(TypeError, match="add_safe_globals\\(\\) takes classes, functions and pairs"):
            add_safe_globals([wrong])
    add_safe_globals([(Options, "old.Options")])
    found = cd.load(with_tree({"$object": {"class": "old.Options", "state": {"size": 3}}}))
    assert type(found) is Options
    assert found.size == 3


def test_objects_of_a_module_need_an_allowed_class_to_be_saved() -> None:
    """An attribute of another class is refused with its path, until its class is allowed."""
    model = nn.ReLU()
    model.options = Options(3)  # type: ignore[assignment]
    with pytest.raises(TypeError, match=re.escape("cannot save obj.options: an Options")):
        written(model)
    add_safe_globals([Options])
    assert back(model).options.size == 3


def test_parameters_that_are_tied_stay_so() -> None:
    """A parameter of two modules is one object."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    found = back(model)
    assert found[0].weight is found[1].weight
    assert found[0].weight.requires_grad
    owner = nn.Module()
    owner.item = nn.Buffer(cd.ones(2), persistent=False)
    assert not back(owner).state_dict()


def test_functions_of_the_program_are_not_saved() -> None:
    """Hooks and lambdas are refused with their path."""
    model = nn.ReLU()
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(TypeError, match=r"cannot save obj\._forward_hooks"):
        written(model)
    other: Any = nn.ReLU()
    other.function = lambda x: x
    with pytest.raises(TypeError, match=r"cannot save obj\.function: a function"):
        written(other)
    with pytest.raises(TypeError, match="cannot save obj: a ReLU; format='pt' holds"):
        cd.save(nn.ReLU(), io.BytesIO(), format="pt")


class Odd(nn.Module):
    """A module whose state is not a dict."""

    def __getstate__(self) -> Any:
        return ["state"]


class Strict(nn.Module):
    """A module that refuses its state."""

    def __new__(cls, *arguments: Any) -> Any:
        if arguments:
            raise TypeError("no arguments")
        return super().__new__(cls)

    def __setstate__(self, members: dict[str, Any]) -> None:
        raise KeyError("missing")


class Needy:
    """An object that cannot be made without arguments."""

    def __new__(cls, value: int) -> Any:
        return super().__new__(cls)


def test_a_state_that_is_no_dict_is_refused() -> None:
    """The error names the object."""
    with pytest.raises(TypeError, match=re.escape("cannot save obj: the state of an Odd is a list")):
        written(Odd())


RELU = "candelabra.nn.modules.activation.ReLU"
EMPTY = {"_parameters": {}, "_buffers": {}, "_modules": {}}
BAD_TREES: list[tuple[object, str]] = [
    ({"$object": {"class": "os.system", "arguments": ["true"]}}, "an object of the class os.system"),
    ({"$object": {"class": "candelabra.save", "arguments": []}}, "an object of the class candelabra.save"),
    ({"$object": {"class": "candelabra.nn.modules.loss.warnings", "state": {}}}, "an object of the class"),
    ({"$object": {"class": "candelabra.nn.modules.loss.PairwiseDistance", "state": {}}}, "an object of the class"),
    ({"$object": {"class": "candelabra.nn.nowhere.X", "state": {}}}, "an object of the class"),
    ({"$object": {"class": RELU, "state": []}}, "a list as state of"),
    ({"$object": {"class": RELU, "state": {}}}, "ReLU without parameters, buffers or modules"),
    ({"$object": {"class": RELU, "state": {"_parameters": [], "_buffers": {}, "_modules": {}}}}, "ReLU without"),
    ({"$object": {"class": RELU}}, "$object has a class, and a state or arguments"),
    ({"$object": {"class": 3, "state": {}}}, "$object has a class, and a state or arguments"),
    ({"$object": {"class": RELU, "other": {}}}, "has no arguments"),
    (
        {"$object": {"class": RELU, "arguments": [1, 2, 3]}},
        "arguments of candelabra.nn.modules.activation.ReLU, which has a state",
    ),
    ({"$object": {"class": "t.Strict", "arguments": [1]}}, "Strict with arguments that it refuses: no arguments"),
    ({"$object": {"class": "t.Strict", "state": EMPTY}}, "Strict with a state that it refuses: 'missing'"),
    ({"$object": {"class": "t.Needy", "state": {}}}, "Needy without arguments"),
    ({"$object": []}, "$object with a list is not known"),
    ({"$ref": 0}, "$ref with an int is not known"),
    ({"$object": {"class": "t.Strict", "arguments": [{"$ref": 0}]}}, "$ref with an int is not known"),
    ({"$set": [[]]}, "$set with a list is not known"),
    ({"$ordered": [[1]]}, "$ordered contains items other than pairs"),
    ({"$function": "save"}, "the function save, which is none of candelabra's operators"),
    ({"$function": "os.system"}, "the function os.system"),
    ({"$function": "nn.functional.nothing"}, "the function nn.functional.nothing"),
    ({"$dtype": "float3"}, "$dtype 'float3' is not known"),
    ({"$device": "a:b:c"}, "$device: "),
]


@pytest.mark.parametrize(("tree", "message"), BAD_TREES)
def test_a_tree_with_objects_that_save_does_not_write(tree: object, message: str) -> None:
    """No name outside candelabra.nn, its operators and the allowed classes is looked up."""
    add_safe_globals([(Strict, "t.Strict"), (Needy, "t.Needy")])
    with pytest.raises(FileFormatError, match=re.escape(message)):
        cd.load(with_tree(tree))


SAVED = written(nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1)))


@given(st.data())
def test_damage_gives_the_documented_error_or_an_object(data: st.DataObject) -> None:
    """Whatever bytes change in the file of a module, load returns or raises FileFormatError."""
    damaged = bytearray(SAVED)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FileFormatError):
        cd.load(io.BytesIO(damaged))
