"""``candelabra.func``: calls of modules with other tensors."""

from __future__ import annotations

import candelabra as cd
import pytest
from candelabra.func import functional_call


def test_a_module_is_called_with_other_tensors() -> None:
    """The tensors of one dictionary, or of several without a common name, replace the module's own; gradients flow."""
    module = cd.nn.Linear(2, 2)
    weight = cd.eye(2, requires_grad=True)
    bias = cd.tensor([1.0, -1.0])
    x = cd.tensor([[2.0, 3.0]])
    out = functional_call(module, {"weight": weight, "bias": bias}, (x,))
    assert out.tolist() == [[3, 2]]
    assert cd.equal(functional_call(module, ({"weight": weight}, {"bias": bias}), x), out)
    out.sum().backward()
    assert weight.grad.tolist() == [[2, 3], [2, 3]]
    assert module.weight.grad is None
    with pytest.raises(ValueError, match=r"\['bias'\] appeared in multiple dictionaries"):
        functional_call(module, ({"bias": bias}, {"bias": bias}), x)


def test_missing_names_are_refused() -> None:
    """The error names the function and what to use instead."""
    assert "jvp" in dir(cd.func)
    with pytest.raises(NotImplementedError, match=r"func\.functionalize\(\): it removes in-place operators"):
        cd.func.functionalize(abs)
    with pytest.raises(AttributeError, match=r"module 'candelabra\.func' has no attribute 'nothing'"):
        _ = cd.func.nothing
