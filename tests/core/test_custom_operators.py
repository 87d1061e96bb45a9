"""``library.custom_op`` and the namespace ``ops``, under which programs of PyTorch declare and call operators."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import _custom_operators, library


@pytest.fixture(autouse=True)
def _no_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test declares its own operators."""
    monkeypatch.setattr(_custom_operators, "DEFINED", {})
    monkeypatch.setattr(_custom_operators, "_fakes", {})
    monkeypatch.setattr(cd.ops, "DEFINED", _custom_operators.DEFINED)


def square() -> Any:
    """Return a new operator that raises to a power, with its derivative."""

    @library.custom_op("tests::power", mutates_args=())
    def power(x: cd.Tensor, exponent: float = 2.0) -> cd.Tensor:
        """Raise to a power."""
        return x.detach() ** exponent

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.exponent = inputs[1]

    library.register_autograd(
        "tests::power",
        lambda ctx, g: (g * ctx.exponent * ctx.saved_tensors[0] ** (ctx.exponent - 1), None),
        setup_context=setup,
    )
    return power


def test_an_operator_is_called_like_its_function() -> None:
    """Arguments have names and defaults; ``ops`` has the operator under its name, and its overload ``default``."""
    power = square()
    assert power(cd.tensor([3.0])).tolist() == [9]
    assert cd.ops.tests.power(exponent=3.0, x=cd.tensor([2.0])).tolist() == [8]
    assert cd.ops.tests.power.default is power
    assert repr(power) == "<custom operator tests::power>"
    assert power.__doc__ == "Raise to a power."
    assert library.custom_op("tests::one", lambda: cd.ones(1))().tolist() == [1]


def test_the_registered_derivative(rng: np.random.Generator) -> None:
    """Autograd sees one node."""
    power = square()
    x = cd.tensor(rng.uniform(1, 2, 3), requires_grad=True)
    assert cd.autograd.gradcheck(lambda t: power(t, 3.0), (x,))


def test_without_a_derivative_the_backward_pass_raises() -> None:
    """The error names the operator."""
    twice = library.custom_op("tests::twice", lambda x: x * 2)
    with pytest.raises(RuntimeError, match="backward through tests::twice but no autograd formula was registered"):
        twice(cd.ones(1, requires_grad=True)).backward()


def test_kernels_of_devices() -> None:
    """A kernel serves its type of device; others have none."""
    only = library.custom_op("tests::only", lambda x: x, device_types="acme")
    with pytest.raises(NotImplementedError, match="tests::only has no kernel for the device 'cpu', only for 'acme'"):
        only(cd.ones(1))
    only.register_kernel("cpu")(lambda x: x + 1)
    assert only(cd.ones(1)).tolist() == [2]
    only.register_kernel(None, lambda x: x + 2)
    assert only(cd.ones(1)).tolist() == [2]


def test_shape_functions() -> None:
    """They serve the device ``meta``, and may be registered before the operator."""
    library.register_fake("tests::early")(lambda x: x.new_empty(2))
    early = library.custom_op("tests::early", lambda x: x)
    assert early(cd.ones(3, device="meta")).shape == (2,)
    late = library.custom_op("tests::late", lambda x: x)
    with pytest.raises(NotImplementedError, match="tests::late: no shape function is registered; use register_fake"):
        late(cd.ones(3, device="meta"))
    library.register_fake(late, lambda x: x.new_empty(4))
    assert late(cd.ones(3, device="meta")).shape == (4,)


@pytest.mark.parametrize("name", ["power", "a::b::c", "::power", "tests::"])
def test_names_have_a_namespace(name: str) -> None:
    """There is exactly one."""
    with pytest.raises(ValueError, match=r"expected a name like 'namespace::name', got "):
        library.custom_op(name)


def test_unknown_operators() -> None:
    """The errors name them."""
    with pytest.raises(RuntimeError, match=r"no operator 'tests::none' is declared; use candelabra\.library\."):
        library.register_autograd("tests::none", lambda ctx, g: g)
    with pytest.raises(AttributeError, match="no operator tests::none is declared"):
        _ = cd.ops.tests.none
    with pytest.raises(AttributeError, match="candelabra has no function for the operator aten::no_such_operator"):
        _ = cd.ops.aten.no_such_operator
    with pytest.raises(OSError, match=r"extension\.so has kernels for PyTorch, which candelabra cannot load"):
        cd.ops.load_library("extension.so")
    for namespace in (cd.ops, cd.ops.aten, cd.ops.aten.add):
        assert not hasattr(namespace, "__wrapped__")


@pytest.mark.parametrize("name", ["relu", "add_", "linalg_inv", "log_softmax", "view", "layer_norm"])
def test_functions_of_pytorchs_dispatcher(name: str) -> None:
    """``ops.aten`` has the public functions; their overloads are the functions themselves."""
    packet = getattr(cd.ops.aten, name)
    assert packet.default is packet.default
    assert repr(packet.default) == f"<operator aten::{name}.default>"
    assert packet.__name__ == name


def test_functions_of_aten_compute() -> None:
    """They are called like the public functions."""
    assert cd.ops.aten.add.Tensor(cd.ones(2), cd.ones(2)).tolist() == [2, 2]
    assert cd.ops.aten.linalg_inv(cd.eye(2)).tolist() == [[1, 0], [0, 1]]
    assert "aten" in repr(cd.ops.aten)
