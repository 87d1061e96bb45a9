"""Calls with other tensors than a module's own, and modules without initialization."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.utils import parametrize, stateless

pytestmark = pytest.mark.filterwarnings("ignore:.*functional_call. is deprecated:FutureWarning")


class Tied(nn.Module):
    """A parameter under two names, and a buffer that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.foo = nn.Parameter(cd.ones(()))
        self.tied = self.foo
        self.register_buffer("calls", cd.zeros(()))

    def forward(self, x: Any, times: float = 1) -> Any:
        self.calls = self.calls + 1
        return x * times + self.foo + self.tied


def test_the_call_uses_the_given_tensors() -> None:
    """Gradients arrive in the given tensors, and the module's own are restored, also after an error."""
    m = nn.Linear(2, 1)
    weight = m.weight
    given = {"weight": cd.ones(1, 2, requires_grad=True), "bias": cd.zeros(1)}
    stateless.functional_call(m, given, cd.ones(1, 2)).sum().backward()
    assert given["weight"].grad.tolist() == [[1, 1]]
    assert m.weight is weight
    assert weight.grad is None
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        stateless.functional_call(m, given, (cd.ones(1, 3),))
    assert m.weight is weight


def test_the_function_is_deprecated() -> None:
    """As in PyTorch, a warning names the successor."""
    with pytest.warns(FutureWarning, match=r"in favor of `func\.functional_call`"):
        stateless.functional_call(nn.ReLU(), {}, cd.ones(1))


def test_tied_weights_are_replaced_together_unless_disabled() -> None:
    """One name stands for all names of a tensor; different values for them are an error."""
    m = Tied()
    zero, one = cd.zeros(()), cd.ones(())
    assert stateless.functional_call(m, {"foo": zero}, zero).item() == 0
    assert stateless.functional_call(m, {"foo": zero}, zero, tie_weights=False).item() == 1
    assert stateless.functional_call(m, {"foo": zero}, one, {"times": 5}).item() == 5
    with pytest.raises(ValueError, match=re.escape("got multiple values for keys ['foo', 'tied'], which are tied")):
        stateless.functional_call(m, {"foo": zero, "tied": one}, zero)


def test_assignments_are_written_into_the_dictionary() -> None:
    """A buffer that the call assigns is in the dictionary afterwards, and the module's own does not change."""
    m = Tied()
    given = {"calls": cd.tensor(10.0)}
    stateless.functional_call(m, given, cd.zeros(()))
    assert given["calls"].item() == 11
    assert m.calls.item() == 0


def test_strict_calls_need_exactly_the_names_of_the_module() -> None:
    """The error lists unexpected and missing names."""
    m = nn.Linear(1, 1)
    text = "Error(s) in reparametrizing for Linear:\n\tUnexpected key(s): 'q'.\n\tMissing key(s): 'bias'."
    with pytest.raises(RuntimeError, match=re.escape(text)):
        stateless.functional_call(m, {"weight": cd.ones(1, 1), "q": cd.ones(1)}, cd.ones(1, 1), strict=True)
    stateless.functional_call(m, {"weight": cd.ones(1, 1), "q": cd.ones(1)}, cd.ones(1, 1))
    assert not hasattr(m, "q")
    with pytest.raises(AttributeError, match="Linear has no attribute `x`"):
        stateless.functional_call(m, {"x.y": cd.ones(1)}, cd.ones(1, 1))


def test_a_value_for_a_parametrized_tensor_disables_the_parametrization() -> None:
    """The original is replaced under its own name, the result under that of the tensor."""

    class Doubled(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    m = parametrize.register_parametrization(nn.Linear(1, 1, bias=False), "weight", Doubled())
    x = cd.ones(1, 1)
    assert stateless.functional_call(m, {"parametrizations.weight.original": x}, x).item() == 2
    assert stateless.functional_call(m, {"weight": x}, x).item() == 1
    assert isinstance(type(m).weight, property)


def test_data_parallel_cannot_be_called_statelessly() -> None:
    """As in PyTorch, it raises an error."""
    with pytest.raises(RuntimeError, match=r"The stateless API can't be used with nn\.DataParallel module"):
        stateless.functional_call(nn.DataParallel(nn.ReLU(), device_ids=[]), {}, cd.ones(1))


def test_skip_init_leaves_parameters_uninitialized() -> None:
    """No random number is drawn; a class without the argument device is refused."""
    before = cd.get_rng_state()
    m = nn.utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert m.weight.shape == (2, 3)
    assert m.weight.device == cd.ones(1).device
    assert (cd.get_rng_state() == before).all()
    with pytest.raises(RuntimeError, match="Expected a Module; got <class 'int'>"):
        nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg to skip initialization"):
        nn.utils.skip_init(nn.ReLU)
