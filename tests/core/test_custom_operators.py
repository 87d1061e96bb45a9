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


def sine() -> Any:
    """Return a new operator on NumPy's memory, with its derivative."""

    @library.custom_op("tests::sine", mutates_args=())
    def sine(x: cd.Tensor, factor: float = 1.0) -> cd.Tensor:
        return cd.from_numpy(np.sin(factor * x.numpy()))

    def backward(ctx: Any, g: cd.Tensor) -> tuple[cd.Tensor, None]:
        (x,) = ctx.saved_tensors
        return g * (ctx.factor * x).cos() * ctx.factor, None

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    sine.register_autograd(backward, setup_context=setup)
    return sine


def test_a_call_is_one_node_of_a_compiled_function(rng: np.random.Generator) -> None:
    """It shares memory with NumPy, which would break the graph. It runs at each call, below autograd."""
    op = sine()
    compiled = cd.compile(lambda x: (op(x * 2, 0.5) + 1).exp(), fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.standard_normal(5)).requires_grad_()
        out = compiled(x)
        (g,) = cd.autograd.grad(out.sum(), x)
        assert out.tolist() == pytest.approx((x.sin() + 1).exp().tolist())
        assert g.tolist() == pytest.approx((out * x.cos()).tolist())
    [node, *_] = [n for n in compiled.programs[0].graphs[0] if "::" in n.name]
    assert node.name == "tests::sine"
    assert repr(node.args[1]) == "<0.5>"


def test_results_of_several_tensors_and_lists_as_arguments() -> None:
    """A graph has a value for each result."""

    @library.custom_op("tests::halves", mutates_args=())
    def halves(vectors: list[cd.Tensor]) -> tuple[cd.Tensor, cd.Tensor]:
        whole = np.concatenate([v.numpy() for v in vectors])
        return cd.tensor(whole[::2]), cd.tensor(whole[1::2])

    compiled = cd.compile(lambda a, b: cd.stack(halves([a + 1, b])), fullgraph=True)
    for i in range(3):
        assert compiled(cd.arange(2.0) + i, cd.arange(2.0)).tolist() == [[i + 1, 0], [i + 2, 1]]


@pytest.mark.parametrize("written", ["out", ("out",), "unknown"])
def test_arguments_that_a_call_writes(written: Any) -> None:
    """Their versions advance, and a compiled function writes them at each call, also memory that it has made."""

    @library.custom_op("tests::sine_into", mutates_args=written)
    def sine_into(x: cd.Tensor, out: cd.Tensor) -> None:
        np.sin(x.numpy(), out=out.numpy())

    def inside(x: cd.Tensor) -> cd.Tensor:
        made = cd.empty_like(x)
        sine_into(x * 2, made)
        return made + 1

    def outside(x: cd.Tensor, out: cd.Tensor) -> cd.Tensor:
        sine_into(x, out)
        return out * 2

    inside, outside = (cd.compile(f, fullgraph=True) for f in (inside, outside))
    for i in range(3):
        x, out = cd.arange(4.0) + i, cd.zeros(4)
        assert inside(x).tolist() == pytest.approx(((x * 2).sin() + 1).tolist())
        version = out._version
        assert outside(x, out).tolist() == pytest.approx((x.sin() * 2).tolist())
        assert out.tolist() == pytest.approx(x.sin().tolist())
        assert out._version == version + 1
    sine_into(x, out)
    assert out._version == version + 2


def test_a_result_that_the_function_keeps_is_never_overwritten() -> None:
    """A graph writes results into memory that nothing else needs. It cannot know whose that of the function is."""
    kept = cd.ones(1000)

    @library.custom_op("tests::kept", mutates_args=())
    def constant(x: cd.Tensor) -> cd.Tensor:
        return kept

    compiled = cd.compile(lambda x: constant(x) * 2 + x, fullgraph=True)
    for _ in range(3):
        assert compiled(cd.ones(1000)).tolist() == [3] * 1000
    assert kept.tolist() == [1] * 1000


@pytest.mark.parametrize(
    ("body", "written", "text"),
    [
        (lambda x: 3, (), "returns a value that is no tensor"),
        (lambda x: x, (), "returns one of its arguments"),
        (lambda x: x + 1, ("x",), "writes arguments and returns a result"),
    ],
)
def test_what_one_node_cannot_be_breaks_the_graph(body: Any, written: Any, text: str) -> None:
    """The error names the operator."""

    def function(x: cd.Tensor) -> Any:
        return body(x)

    op = library.custom_op("tests::odd", function, mutates_args=written)
    with pytest.raises(cd.graph.GraphBreak, match=f"tests::odd {text}"):
        cd.compile(lambda x: op(x * 2), fullgraph=True)(cd.ones(2))


def test_opcheck_accepts_what_keeps_its_declaration(rng: np.random.Generator) -> None:
    """All checks run by default, each by its name."""
    op = sine()
    op.register_fake(lambda x, factor=1.0: cd.empty_like(x))
    for x in (cd.tensor(rng.standard_normal((2, 3))), cd.ones(3).requires_grad_(), cd.ones(0, 2)):
        assert set(library.opcheck(op, (x,), {"factor": 0.5}).values()) == {"SUCCESS"}
    assert library.opcheck(op, (cd.ones(2),), test_utils="test_schema") == {"test_schema": "SUCCESS"}

    @library.custom_op("tests::doubled_into", mutates_args=("out",))
    def doubled_into(x: cd.Tensor, out: cd.Tensor) -> None:
        out.copy_(x * 2)

    assert len(library.opcheck(doubled_into, (cd.ones(2), cd.zeros(2)))) == 4


def drifting() -> Any:
    """Return a function whose results differ from call to call."""
    calls: list[int] = []

    def drift(x: cd.Tensor) -> cd.Tensor:
        calls.append(1)
        return x + len(calls)

    return drift


@pytest.mark.parametrize(
    ("function", "check", "text"),
    [
        (lambda x: x.add_(1).clone(), "test_schema", "the call has written 'x', which is not in mutates_args"),
        (lambda x: x[1:], "test_schema", "a result shares memory with 'x'; return a clone"),
        (lambda x: x.sum(), "test_faketensor", r"the shape function returned .*, expected .*"),
        (drifting(), "test_aot_dispatch_dynamic", "result 0 of a compiled call differs from that of an eager one"),
    ],
)
def test_opcheck_names_what_is_wrong(function: Any, check: str, text: str) -> None:
    """It raises, or returns the error with ``raise_exception=False``."""

    def named(x: cd.Tensor) -> cd.Tensor:
        return function(x)

    op = library.custom_op("tests::wrong", named, mutates_args=())
    op.register_fake(lambda x: cd.empty_like(x))
    with pytest.raises(RuntimeError, match=f"{check} of tests::wrong failed: {text}"):
        library.opcheck(op, (cd.ones(3),), test_utils=check)
    found = library.opcheck(op, (cd.ones(3),), test_utils=[check], raise_exception=False)
    assert isinstance(found[check], RuntimeError)


def test_opcheck_notices_results_without_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result requires grad if an argument does and there is a derivative."""
    op = sine()
    monkeypatch.setattr(type(op), "__call__", lambda self, x, factor: self._call((x.detach(), factor)))
    with pytest.raises(RuntimeError, match="a result does not require grad"):
        library.opcheck(op, (cd.ones(3).requires_grad_(),), test_utils="test_autograd_registration")


def test_opcheck_refuses_unknown_checks() -> None:
    """The error names those that there are."""
    with pytest.raises(ValueError, match=r"expected test_utils of test_schema, .*, got 'test_speed'"):
        library.opcheck(sine(), (cd.ones(3),), test_utils="test_speed")


def test_the_record_of_a_node_has_no_rule_for_shapes() -> None:
    """The error says when the shape is known."""
    record = sine()._record
    with pytest.raises(NotImplementedError, match="tests::sine: the shape of its result is known after a call only"):
        record.rule(record, ())
