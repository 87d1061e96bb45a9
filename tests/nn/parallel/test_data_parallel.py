"""DataParallel over the two devices of a fake accelerator, and the functions that it consists of."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn import parallel

pytestmark = pytest.mark.usefixtures("lantern")
DEVICES = ["lantern:0", "lantern:1"]


class Pair(NamedTuple):
    """Two values."""

    first: Any
    second: Any


class Recording(nn.Module):
    """A layer that records the device of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.tied = self.linear
        self.scale = nn.Parameter(cd.full((1,), 2.0))
        self.register_parameter("none", None)
        self.add_module("nothing", None)
        self.register_buffer("count", cd.zeros(1))
        self.register_buffer("empty", None)
        self.seen: list[str] = []

    def forward(self, x: Any, more: float = 0) -> Any:
        self.seen.append(str(x.device))
        self.count += 1
        return self.tied(x) * self.scale + more


def test_the_batch_is_divided_and_gradients_add_up() -> None:
    """Outputs and gradients are those of the module alone; each device gets half of the batch."""
    plain = Recording()
    m = Recording()
    m.load_state_dict(plain.state_dict())
    m.to("lantern:0")
    both = nn.DataParallel(m, device_ids=DEVICES)
    x = cd.randn(4, 3)
    out = both(x.to("lantern:0"), more=1.0)
    assert out.device == cd.device("lantern:0")
    expected = plain(x, more=1.0)
    assert cd.allclose(out.to(expected.device), expected, atol=1e-6)
    out.square().sum().backward()
    expected.square().sum().backward()
    for a, b in zip(m.parameters(), plain.parameters(), strict=True):
        assert cd.allclose(a.grad.to(b.device), b.grad, atol=1e-5)
    assert sorted(m.seen) == DEVICES
    assert m.count.tolist() == [1]
    assert next(iter(both.state_dict())) == "module.scale"
    with cd.no_grad():
        assert not both(x.to("lantern:0")).requires_grad
    assert both(x[:1].to("lantern:0")).shape == (1, 2)


def test_one_device_and_none_call_the_module_itself() -> None:
    """With one device the module is moved there; with an empty list it stays where it is."""
    m = Recording()
    one = nn.DataParallel(m, device_ids=["lantern:1"])
    assert m.scale.device == cd.device("lantern:1")
    assert one(cd.ones(2, 3)).device == cd.device("lantern:1")
    m = Recording()
    none = nn.DataParallel(m, device_ids=[])
    assert none(cd.ones(2, 3)).device == m.scale.device


def test_a_module_on_another_device_is_refused() -> None:
    """The parameters must be on the first device."""
    text = "module must have its parameters and buffers on device lantern:0 (device_ids[0]) but found one of them on"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        nn.DataParallel(Recording(), device_ids=DEVICES)(cd.ones(2, 3))


def test_the_function_takes_one_argument_or_a_tuple() -> None:
    """data_parallel calls the module once; None means no arguments."""
    m = nn.Linear(3, 2).to("lantern:0")
    x = cd.ones(4, 3, device="lantern:0")
    assert parallel.data_parallel(m, x, DEVICES).shape == (4, 2)
    assert parallel.data_parallel(m, (x,), DEVICES, "lantern:1").device == cd.device("lantern:1")

    class Constant(nn.Module):
        def forward(self) -> Any:
            return cd.ones(1)

    assert parallel.data_parallel(Constant(), None, DEVICES).device == cd.device("lantern:0")


def test_nested_inputs_are_divided_and_joined() -> None:
    """Tuples, lists, dictionaries and named tuples are divided by their tensors; other objects are shared."""
    x = cd.arange(4.0)
    value = {"a": [x, 3], "b": Pair(x, "text"), "c": (x,), "d": ()}
    parts = parallel.scatter(value, DEVICES)
    assert [part["a"][0].tolist() for part in parts] == [[0, 1], [2, 3]]
    assert [str(part["b"].first.device) for part in parts] == DEVICES
    assert [part["b"].second for part in parts] == ["text", "text"]
    assert len(parallel.scatter(cd.ones(1), DEVICES)) == 1
    tensors = [{"b": Pair(part["b"].first, None), "c": part["c"], "a": part["a"][:1]} for part in parts]
    joined = parallel.gather(tensors, "lantern:1")
    assert joined["b"].first.tolist() == [0, 1, 2, 3]
    assert joined["b"].second is None
    assert joined["a"][0].device == joined["c"][0].device == cd.device("lantern:1")
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        parallel.gather([{"a": x}, {}], "lantern:0")
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0, but all input tensors were scalars"):
        assert parallel.gather([cd.ones(()), cd.ones(())], "lantern:0").shape == (2,)


def test_modules_run_at_the_same_time_and_errors_say_where() -> None:
    """The first error is raised, with the number of the replica; sequences of different lengths are refused."""
    modules = [nn.Linear(2, 1), nn.Linear(3, 1)]
    outputs = parallel.parallel_apply(modules, [cd.ones(1, 2), (cd.ones(1, 3),)])
    assert [out.shape for out in outputs] == [(1, 1), (1, 1)]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        parallel.parallel_apply(modules, [cd.ones(1, 2), cd.ones(1, 2)], None, [None, cd.device("lantern:1")])
    assert "replica 1 on device lantern:1" in caught.value.__notes__[0]
    for more in (([1],), ([1, 2], [{}]), ([1, 2], None, [None])):
        with pytest.raises(AssertionError, match="The number of modules 2 is not equal to the number of"):
            parallel.parallel_apply(modules, *more)


def test_replicas_are_detached_if_asked() -> None:
    """Without a graph the copies require no gradient."""
    (copy,) = parallel.replicate(nn.Linear(2, 1), ["lantern:1"], detach=True)
    assert not copy.weight.requires_grad
    assert copy.weight.device == cd.device("lantern:1")


def test_indices_are_devices_of_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index without an accelerator is an error."""
    monkeypatch.setattr("candelabra.accelerator.current_accelerator", lambda: cd.device("lantern"))
    monkeypatch.setattr("candelabra.accelerator.device_count", lambda: 2)
    assert [str(d) for d in nn.DataParallel(nn.ReLU()).device_ids] == DEVICES
    assert nn.DataParallel(nn.ReLU(), [0, 1], output_device=1).output_device == cd.device("lantern:1")
    monkeypatch.setattr("candelabra.accelerator.device_count", lambda: 1)
    assert nn.DataParallel(nn.ReLU()).device_ids == []
    monkeypatch.setattr("candelabra.accelerator.current_accelerator", lambda: None)
    with pytest.raises(RuntimeError, match="device index 1 needs an accelerator, but none is available"):
        nn.DataParallel(nn.ReLU(), [1])
