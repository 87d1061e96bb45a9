"""Module: construction, changing the tree, hooks for every module, hooks of one node, copies."""

from __future__ import annotations

import copy
import gc
import pickle  # noqa: TID251 - whole modules are pickled by multiprocessing and by programs
import re
import weakref
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.modules import _hooks, module


class Squared(nn.Module):
    """Returns its input to the power of 2, in one operator."""

    def forward(self, x: Any) -> Any:
        return x.square()


# -- construction -----------------------------------------------------------------------------------------------------
def test_arguments_of_the_base_are_refused_or_passed_on() -> None:
    """Module() takes no arguments unless call_super_init is True, which passes them to the next base."""

    class Plain(nn.Module):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    with pytest.raises(TypeError, match=r"Plain\.__init__\(\) takes 1 positional argument but 2 were given"):
        Plain(1)
    with pytest.raises(TypeError, match=r"Plain\.__init__\(\) got an unexpected keyword argument 'x'"):
        Plain(x=1)

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

        def __init__(self, name: str) -> None:
            super().__init__(name)

    assert Both("b").name == "b"
    assert nn.Module.dump_patches is False


def test_set_submodule_replaces_and_adds() -> None:
    """A path leads to the module to replace; strict=True refuses to add."""
    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Linear(1, 1))
    net.set_submodule("0.0", nn.Tanh())
    net.set_submodule("0.more", nn.GELU())
    assert repr(net[0]) == "Sequential(\n  (0): Tanh()\n  (more): GELU(approximate='none')\n)"
    for arguments, error, text in (
        (("", nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"),
        (("0", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
        (("0.x", nn.ReLU(), True), AttributeError, "Sequential has no attribute `x`"),
        (("1.weight", nn.ReLU()), AttributeError, "`weight` is not an nn.Module"),
    ):
        with pytest.raises(error, match=re.escape(text)):
            net.set_submodule(*arguments)


def test_a_subclass_may_define_register_buffer_without_persistent() -> None:
    """Assigned buffers are registered through it, and one that is not persistent is an error."""

    class Old(nn.Module):
        def register_buffer(self, name: str, tensor: Any) -> None:  # type: ignore[override]
            super().register_buffer(name, tensor)

    m = Old()
    m.b = nn.Buffer(cd.ones(1))
    m.b = cd.zeros(1)
    assert list(m.state_dict()) == ["b"]
    with pytest.raises(RuntimeError, match="Registering a non-persistent buffer on a Module subclass that implements"):
        m.c = nn.Buffer(cd.ones(1), persistent=False)


def test_names_that_programs_import_from_the_module() -> None:
    """PyTorch's private helpers exist, because programs import them."""
    assert module._addindent("a\nb", 2) == "a\n  b"
    assert isinstance(nn.ReLU().load_state_dict({}), module._IncompatibleKeys)


def test_modules_can_be_listed_with_duplicates() -> None:
    """modules(remove_duplicate=False) lists a module once per name."""
    relu = nn.ReLU()
    net = nn.Sequential(relu, relu)
    assert len(list(net.modules())) == 2
    assert len(list(net.modules(remove_duplicate=False))) == 3


# -- moving -----------------------------------------------------------------------------------------------------------
def test_to_empty_gives_memory_to_a_module_on_meta() -> None:
    """A module built on the device meta gets uninitialized memory, and its parameters stay the same objects."""
    m = nn.Linear(3, 2, device="meta")
    weight = m.weight
    assert m.to_empty(device=cd.ones(1).device) is m
    assert m.weight is weight
    assert weight.device == cd.ones(1).device
    assert weight.shape == (2, 3)
    assert weight.requires_grad


def test_to_a_memory_format_changes_4d_tensors() -> None:
    """to(memory_format=channels_last) changes the layout of 4-d parameters and leaves others."""
    m = nn.Conv2d(2, 3, 2).to(memory_format=cd.channels_last)
    assert m.weight.is_contiguous(memory_format=cd.channels_last)
    assert m.bias.shape == (3,)


@pytest.mark.parametrize("name", ["ipu", "xpu", "mtia"])
def test_device_methods_need_a_backend(name: str) -> None:
    """Methods of devices that are not installed raise an error that names the device."""
    with pytest.raises((RuntimeError, AttributeError), match=name):
        getattr(nn.Linear(1, 1), name)()


# -- hooks of one node ------------------------------------------------------------------------------------------------
def test_old_backward_hooks_get_the_gradients_of_the_last_operator() -> None:
    """register_backward_hook calls the hook with the gradients of one node, and may replace them."""
    m = Squared()
    m.register_backward_hook(lambda module, grad_in, grad_out: (grad_in[0] * 10,))
    x = cd.ones(2, requires_grad=True)
    m(x * 1).sum().backward()
    assert x.grad.tolist() == [20, 20]
    m(cd.ones(2))  # without a graph there is nothing to hook


class Returning(nn.Module):
    """Returns what a function computes."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


@pytest.mark.parametrize(
    ("function", "more", "text"),
    [
        (lambda x: {"a": 1, "b": x.exp()}, (), "does not return a single Tensor or a tuple of Tensors"),
        (lambda x, n: x * n, (3,), "does not take as input a single Tensor or a tuple of Tensors"),
        (lambda x: (x.exp(), x.sin()), (), "outputs are generated by different autograd Nodes"),
        (lambda x: x.exp().sin(), (), "the forward contains multiple autograd Nodes"),
    ],
)
def test_old_backward_hooks_warn_if_gradients_are_missing(function: Any, more: Any, text: str) -> None:
    """A FutureWarning says why the hook does not get the gradients of the module."""
    m = Returning(function)
    m.register_backward_hook(lambda *_: None)
    with pytest.warns(FutureWarning, match=text):
        m(cd.ones(2, requires_grad=True).exp(), *more)


def test_both_kinds_of_backward_hooks_exclude_each_other() -> None:
    """A module has either old or full backward hooks."""
    text = "Cannot use both regular backward hooks and full backward hooks on a single Module"
    m = nn.ReLU()
    handle = m.register_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match=text):
        m.register_full_backward_hook(lambda *_: None)
    handle.remove()
    m.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match=text):
        m.register_backward_hook(lambda *_: None)


def test_full_backward_hooks_need_tensors_in_the_output() -> None:
    """An output in a dictionary is not watched, which a warning says."""
    m = Returning(lambda x: {"a": x.exp()})
    m.register_full_backward_hook(lambda *_: pytest.fail("called"))
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors but received"):
        out = m(cd.ones(2, requires_grad=True))
    out["a"].sum().backward()


def test_an_always_called_hook_that_fails_is_silenced() -> None:
    """If forward raised, the error of a hook becomes a warning, and forward's error is propagated."""
    m = Returning(lambda: 1 / 0)
    m.register_forward_hook(lambda *_: [][1], always_call=True)
    with (
        pytest.warns(UserWarning, match="module forward hook with ``always_call=True`` raised an exception that was"),
        pytest.raises(ZeroDivisionError),
    ):
        m()


# -- hooks of all modules ---------------------------------------------------------------------------------------------
@pytest.fixture
def remove() -> Iterator[list[Any]]:
    """A list of handles, which are removed after the test."""
    handles: list[Any] = []
    yield handles
    for handle in handles:
        handle.remove()


def test_global_hooks_are_called_for_every_module(remove: list[Any]) -> None:
    """They run before the module's own hooks, until they are removed."""
    log: list[Any] = []
    remove += [
        module.register_module_forward_pre_hook(lambda m, args: log.append("pre")),
        module.register_module_forward_hook(lambda m, args, out: log.append("post")),
        module.register_module_forward_hook(lambda m, args, kwargs, out: log.append(kwargs), with_kwargs=True),
        module.register_module_full_backward_pre_hook(lambda m, grad: log.append("before backward")),
        module.register_module_full_backward_hook(lambda m, gi, go: log.append("backward")),
    ]
    m = Squared()
    m.register_forward_pre_hook(lambda m, args: log.append("own"))
    m(cd.ones(1, requires_grad=True)).sum().backward()
    assert log == ["pre", "own", "post", {}, "before backward", "backward"]
    text = "Cannot use both regular backward hooks and full backward hooks as a global Module hook"
    with pytest.raises(RuntimeError, match=text):
        module.register_module_backward_hook(lambda *_: None)
    for handle in remove:
        handle.remove()
    log.clear()
    m(cd.ones(1))
    assert log == ["own"]
    remove.append(module.register_module_backward_hook(lambda m, gi, go: log.append("node")))
    m(cd.ones(1, requires_grad=True) * 1).sum().backward()
    assert log == ["own", "own", "node"]


def test_a_global_hook_is_called_after_an_error_if_asked(remove: list[Any]) -> None:
    """always_call=True calls the hook with None if forward raises, once."""
    log: list[Any] = []
    remove.append(module.register_module_forward_hook(lambda m, args, out: log.append(out), always_call=True))
    with pytest.raises(ZeroDivisionError):
        Returning(lambda: 1 / 0)()
    assert log == [None]
    assert not _hooks.EVERYWHERE.forward_with_kwargs


def test_registration_hooks_see_and_replace_members(remove: list[Any]) -> None:
    """They are called with module, name and member, and may return another member."""
    log: list[str] = []
    remove += [
        module.register_module_buffer_registration_hook(lambda m, name, b: log.append(f"buffer {name}")),
        module.register_module_parameter_registration_hook(lambda m, name, p: nn.Parameter(cd.zeros(1))),
        module.register_module_module_registration_hook(lambda m, name, child: log.append(f"module {name}")),
    ]
    m = nn.Module()
    m.p = nn.Parameter(cd.ones(3))
    m.b = nn.Buffer(cd.ones(1))
    m.c = nn.ReLU()
    m.c = None
    m.add_module("d", None)
    assert m.p.tolist() == [0]
    assert log == ["buffer b", "module c", "module c", "module d"]


# -- copies -----------------------------------------------------------------------------------------------------------
def test_modules_can_be_pickled_and_are_freed_without_the_collector() -> None:
    """A pickled module has equal parameters, and hooks with the module as argument form no reference cycle."""
    m = nn.Linear(2, 2)
    other = pickle.loads(pickle.dumps(m))  # noqa: S301 - written by this test
    assert other.weight.tolist() == m.weight.tolist()
    assert other.weight.requires_grad
    m.register_load_state_dict_pre_hook(lambda *_: None)
    alive = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert alive() is None
    finally:
        gc.enable()


def test_a_replica_shares_members_but_not_their_tables() -> None:
    """_replicate_for_data_parallel returns a shallow copy without parameters of its own."""
    m = nn.BatchNorm1d(2)
    replica = m._replicate_for_data_parallel()
    assert list(replica.parameters()) == []
    assert replica.running_mean is m.running_mean
    replica.extra = nn.Parameter(cd.ones(1))
    assert len(list(m.parameters())) == 2
    assert copy.copy(m).weight is m.weight
