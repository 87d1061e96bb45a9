"""The state of modules: versions, hooks around saving and loading, modules that load in their own way."""

from __future__ import annotations

import copy
import re
from collections import OrderedDict
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn


class Versioned(nn.Module):
    """A module of version 3 that records what it is loaded with, and doubles its parameter after loading."""

    _version = 3

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(cd.ones(2))
        self.loaded_with: list[Any] = []

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        self.loaded_with.append((list(state_dict), prefix, dict(local_metadata)))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)
        with cd.no_grad():
            self.a.mul_(2)


def test_the_state_has_the_version_of_each_module() -> None:
    """state_dict() is an OrderedDict whose _metadata survives copies; _load_from_state_dict gets the module's part."""
    net = nn.Sequential(Versioned(), nn.ReLU())
    state = net.state_dict()
    assert type(state) is OrderedDict
    assert state._metadata == {"": {"version": 1}, "0": {"version": 3}, "1": {"version": 1}}
    assert copy.deepcopy(state)._metadata == state._metadata
    net.load_state_dict(state)
    net.load_state_dict(dict(state))
    assert net[0].loaded_with == [(["0.a"], "0.", {"version": 3}), (["0.a"], "0.", {})]


def test_an_overridden_load_sees_the_loaded_tensors() -> None:
    """After the inherited _load_from_state_dict, the tensors of the module have their new values."""
    net = nn.Sequential(Versioned())
    net.load_state_dict({"0.a": cd.full((2,), 5.0)})
    assert net[0].a.tolist() == [10, 10]


def test_the_load_method_can_be_called_alone() -> None:
    """_load_from_state_dict loads one module's tensors and lists problems, without load_state_dict."""
    m = nn.Linear(1, 1)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    m._load_from_state_dict({"x.weight": cd.ones(1, 1), "x.y": 1}, "x.", {}, True, missing, unexpected, errors)
    assert m.weight.tolist() == [[1]]
    assert (missing, unexpected, errors) == (["x.bias"], ["x.y"], [])


def test_a_state_can_be_collected_into_a_given_dictionary() -> None:
    """destination= is filled and returned; positional arguments work with a warning."""
    m = nn.Linear(1, 1)
    given: dict[str, Any] = {}
    assert m.state_dict(destination=given, prefix="a.") is given
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert m.state_dict(given, "b.", True) is given
    assert list(given) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert given["b.weight"] is m.weight


def test_hooks_on_saving() -> None:
    """A private post-hook may return another dictionary, a public one must return None and cannot be both."""
    m = nn.Linear(1, 1)
    handle = m._register_state_dict_hook(lambda module, state, prefix, meta: {"other": meta["version"]})
    assert m.state_dict() == {"other": 1}
    handle.remove()

    def public(module: Any, state: Any, prefix: str, meta: Any) -> Any:
        return state

    m.register_state_dict_post_hook(public)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        m.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function as the state dict post hook that was"):
        m._register_state_dict_hook(public)


def test_hooks_before_loading_get_the_module_if_asked() -> None:
    """_register_load_state_dict_pre_hook passes the module with with_module=True, and a copied module passes itself."""
    m = nn.Linear(1, 1)
    seen: list[Any] = []
    m._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append((prefix, len(rest))))
    m._register_load_state_dict_pre_hook(lambda module, *rest: seen.append((module, len(rest))), with_module=True)
    m.load_state_dict(m.state_dict())
    assert seen == [("", 5), (m, 7)]
    seen.clear()
    other = copy.deepcopy(m)
    other.load_state_dict(m.state_dict())
    assert seen[1][0] is other


def test_a_post_hook_sees_the_loaded_tensors() -> None:
    """Hooks after loading run after the values were copied, children first."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False))
    seen: list[Any] = []
    net.register_load_state_dict_post_hook(lambda module, keys: seen.append(module[0].weight.item()))
    net[0].register_load_state_dict_post_hook(lambda module, keys: seen.append(module))
    net.load_state_dict({"0.weight": cd.full((1, 1), 7.0)})
    assert seen == [net[0], 7.0]


def test_a_wrong_size_loads_nothing_even_with_hooks() -> None:
    """If a size is wrong, no tensor changes and no post-hook runs."""
    m = nn.Linear(1, 1)
    before = m.bias.item()
    m.register_load_state_dict_post_hook(lambda module, keys: pytest.fail("ran"))
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        m.load_state_dict({"weight": cd.ones(2, 2), "bias": cd.ones(1)})
    assert m.bias.item() == before


def test_a_failing_copy_is_listed_in_the_error() -> None:
    """An exception of copy_ becomes part of the error, with both shapes."""

    class Refusing(nn.Parameter):
        __slots__ = ()

        def copy_(self, *_: Any) -> Any:
            raise ValueError("read only")

    m = nn.Module()
    m.p = Refusing(cd.ones(1))
    text = (
        'While copying the parameter named "p", whose dimensions in the model are candelabra.Size([1]) and whose '
        "dimensions in the checkpoint are candelabra.Size([1]), an exception occurred : ('read only',)."
    )
    with pytest.raises(RuntimeError, match=re.escape(text)):
        m.load_state_dict({"p": cd.zeros(1)})


def test_scalars_of_old_files_and_members_without_value() -> None:
    """A one-element vector loads into a 0-d buffer; keys below a child that is None are ignored."""
    m = nn.Module()
    m.register_buffer("z", cd.tensor(1.0))
    m.add_module("none", None)
    m.load_state_dict({"z": cd.full((1,), 4.0), "none.weight": cd.ones(1)})
    assert m.z.item() == 4


def test_assigned_parameters_keep_requires_grad_of_the_module() -> None:
    """With assign=True, requires_grad is that of the module, whatever the state says."""
    m = nn.Linear(1, 1)
    m.bias.requires_grad_(False)
    m.load_state_dict({"weight": nn.Parameter(cd.ones(1, 1), False), "bias": nn.Parameter(cd.ones(1))}, assign=True)
    assert m.weight.requires_grad
    assert not m.bias.requires_grad


def test_loading_into_meta_parameters_warns() -> None:
    """Values that are copied to the device meta are lost, which a warning says; assign=True takes them."""
    m = nn.Linear(1, 1, bias=False).to("meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint"):
        m.load_state_dict({"weight": cd.ones(1, 1)})
    m.load_state_dict({"weight": cd.ones(1, 1)}, assign=True)
    assert m.weight.tolist() == [[1]]
