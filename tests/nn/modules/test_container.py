"""Containers: the methods of lists and dictionaries, and how containers are printed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


def names(container: Any) -> list[str]:
    """Return the names of the classes in a container."""
    return [type(module).__name__ for module in container]


def test_sequential_has_the_operations_of_a_list() -> None:
    """Adding, repeating, inserting and removing renumber the modules."""
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert names(s + nn.Sequential(nn.GELU())) == ["ReLU", "Tanh", "GELU"]
    assert names(s * 2) == names(2 * s) == ["ReLU", "Tanh"] * 2
    assert (s * 2)[0] is (s * 2)[2]
    s += nn.Sequential(nn.GELU())
    s *= 2
    assert names(s) == ["ReLU", "Tanh", "GELU"] * 2
    assert type(s.pop(0)) is nn.ReLU
    assert names(s.pop(slice(0, 2))) == ["Tanh", "GELU"]
    del s[::2]
    assert names(s) == ["Tanh"]
    assert list(s._modules) == ["0"]
    s.insert(-1, nn.ReLU()).extend([nn.ReLU()])
    assert names(s) == ["ReLU", "Tanh", "ReLU"]
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert list(named[1:]._modules) == ["b"]
    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for \*: <class '.*Sequential'> and <class 'str"
    ):
        s * "2"  # type: ignore[operator]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0 for <class"):
        s *= 0
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class, but <class 'int'>"):
        s += 3


def test_module_lists_may_have_gaps_and_are_printed_shortly() -> None:
    """An entry may be None; equal entries that follow each other are printed once."""
    m = nn.ModuleList([None, nn.ReLU(), None])
    assert names(m) == ["NoneType", "ReLU", "NoneType"]
    assert m[0] is None
    m = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())])
    assert repr(m) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Sequential(\n    (0): Tanh()\n  )\n)"
    )  # fmt: skip
    assert repr(nn.ModuleList()) == "ModuleList()"
    assert names(m + nn.ModuleList([nn.GELU()])) == ["ReLU", "ReLU", "Sequential", "GELU"]
    m += [nn.GELU()]
    assert len(m) == 4


def test_parameter_dict_has_the_methods_of_a_dictionary() -> None:
    """Each method treats tensors as parameters and other values as they are."""
    d = nn.ParameterDict({"b": cd.ones(2), "a": cd.zeros(1)})
    assert list(d) == ["a", "b"]
    assert list(reversed(d)) == ["b", "a"]
    assert d.copy()["a"] is d["a"]
    assert isinstance(d.setdefault("z", cd.ones(1)), nn.Parameter)
    assert d.setdefault("a") is d["a"]
    assert d.get("nothing") is None
    assert d.get("nothing", 3) == 3
    assert d.popitem()[0] == "z"
    assert d.pop("b").tolist() == [1, 1]
    assert list(d.fromkeys(["x", "y"], 1).items()) == [("x", 1), ("y", 1)]
    more = nn.ParameterDict({"c": cd.ones(1)})
    assert list(d | more) == ["a", "c"]
    assert list(nn.ParameterDict.__ror__(d, more)) == ["c", "a"]
    d |= more
    assert list(d.named_parameters()) == [("a", d["a"]), ("c", d["c"])]
    assert list(d.values()) == [d["a"], d["c"]]
    d.clear()
    assert len(d) == 0
    assert list(d.state_dict()) == []
    with pytest.raises(KeyError, match="dictionary is empty"):
        d.popitem()
    with pytest.raises(TypeError, match=r"as a key as it is not a string \(type is 'int'\)"):
        d[3] = cd.ones(1)  # type: ignore[index]


def test_parameter_containers_are_printed_but_not_called() -> None:
    """The representation has dtype and size of each member; a call is an error."""
    p = nn.ParameterList([cd.ones(2, 3), "text"])
    assert repr(p) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [candelabra.float32 of size 2x3]\n"
        "    (1): Object of type: str\n"
        ")"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        p(1)
    d = nn.ParameterDict({"a": cd.ones(1)})
    assert repr(d) == "ParameterDict(  (a): Parameter containing: [candelabra.FloatTensor of size 1])"
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        d(1)


@pytest.mark.usefixtures("lantern")
def test_the_device_is_printed_if_it_is_not_the_host() -> None:
    """As in PyTorch, members on an accelerator are printed with their device."""
    p = nn.ParameterList([cd.ones(1, device="lantern:0")])
    assert "of size 1 (lantern:0)]" in repr(p)


def test_container_is_deprecated() -> None:
    """nn.Container registers keyword arguments as modules, with a warning."""
    with pytest.warns(FutureWarning, match=r"`nn\.Container` is deprecated"):
        c = nn.Container(a=nn.ReLU())
    assert names(c.children()) == ["ReLU"]


def test_module_dict_keeps_missing_modules() -> None:
    """A value may be None, and clear() removes all."""
    d = nn.ModuleDict({"a": None, "b": nn.ReLU()})
    assert d["a"] is None
    d.clear()
    assert len(d) == 0
