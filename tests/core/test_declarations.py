"""What is checked when operators, derivatives, fronts and indices of modules are declared: nothing bad gets in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra import Tensor, index, journal
from candelabra._device import open_device
from candelabra._namespace.publishing import _finder
from candelabra._operators.fronts.registry import FRONTS
from candelabra._records.derivative import applied
from candelabra._records.record import OPERATORS, operator
from candelabra._records.rules import pointwise


class Twins(NamedTuple):
    """Two results."""

    left: Any
    right: Any


def fresh(**annotations: str) -> Callable[..., Any]:
    """A function ``flicker(input, other)`` whose annotations are those that are given."""

    def flicker(input: Any, other: Any) -> Any:
        """Shine, now and then."""
        ...

    flicker.__annotations__ = annotations
    return flicker


def undocumented() -> Callable[..., Any]:
    """The same without a docstring."""
    made = fresh(input="Tensor", other="Tensor", **{"return": "Tensor"})
    made.__doc__ = None
    return made


def taken() -> Callable[..., Any]:
    """A function with a name that an operator has already."""

    def exp(input: Any) -> Any:
        """Another exponential."""
        ...

    exp.__annotations__ = {"input": "Tensor", "return": "Tensor"}
    return exp


REFUSED = {
    "no annotation": (
        lambda: fresh(input="Tensor", **{"return": "Tensor"}),
        TypeError,
        r"operator flicker: parameter 'other' has no annotation",
    ),
    "result": (
        lambda: fresh(input="Tensor", other="Tensor", **{"return": "int"}),
        TypeError,
        r"operator flicker: the return annotation must be Tensor or a NamedTuple class, got 'int'",
    ),
    "no result": (
        lambda: fresh(input="Tensor", other="Tensor"),
        TypeError,
        r"operator flicker: the return annotation must be Tensor or a NamedTuple class, got None",
    ),
    "no docstring": (
        undocumented,
        TypeError,
        r"operator flicker: the docstring is its documentation and may not be missing",
    ),
    "twice": (taken, ValueError, r"operator 'exp' is declared twice: first in candelabra\.ops\.\w+, now in .*declarat"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_declaration_with_a_mistake_is_refused(mistake: str) -> None:
    """The error names the operator and what is missing; the operators are as before."""
    make, error, text = REFUSED[mistake]
    known = OPERATORS["exp"]
    with pytest.raises(error, match=text):
        operator(pointwise)(make())
    assert "flicker" not in OPERATORS
    assert OPERATORS["exp"] is known
    assert not hasattr(cd, "flicker")


def joint(*arguments: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What ``vjp`` is called with."""
    return arguments, {}


def single(**rules: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same, by name."""
    return (), rules


RULES: dict[str, tuple[tuple[tuple[Any, ...], dict[str, Any]], str]] = {
    "no pair": (joint("input", len), r"lerp\.vjp: a joint rule is vjp\(\(names…\), function\), got \('input', "),
    "not an input": (
        single(weird=lambda g: g),
        r"'weird' is no differentiable input of lerp\(input, end, weight\) -> out; rule for weird: \(g\)",
    ),
    "unknown name": (
        single(input=lambda g, ouput: g * ouput),
        r"'ouput' is neither an input, an output, a gradient \(g\) nor an input's spec of lerp\(input, end, weight\)",
    ),
    "needs in a single rule": (single(input=lambda g, needs: g), r"'needs' is neither an input, an output"),
    "no gradient": (
        single(input=lambda out: out),
        r"a derivative is linear in the gradient, but none of \['g'\] is asked for; rule for input: \(out\)",
    ),
    "default": (
        single(input=lambda g, out=None: g),
        r"only a gradient may have a default \(None: may be absent\), 'out' has one; rule for input: \(g, out\)",
    ),
}


@pytest.mark.parametrize("mistake", RULES)
def test_a_derivative_with_a_mistake_is_refused(mistake: str) -> None:
    """Both sides, the rule and the signature, are quoted; the rules of the operator are as before."""
    record = OPERATORS["lerp"]
    (arguments, rules), text = RULES[mistake]
    before = dict(record.rules)
    with pytest.raises(TypeError, match=text):
        record.vjp(*arguments, **rules)
    assert record.rules == before


def test_an_input_may_not_have_an_outputs_name() -> None:
    """A rule that asks for the name could mean either."""
    from candelabra._records.record import Operator

    def flicker(left: Any) -> Any:
        """Shine twice."""
        ...

    flicker.__annotations__ = {"left": "Tensor", "return": "Twins"}
    record: Operator[..., Any] = Operator(flicker, pointwise)
    text = r"'left' is both an input and an output of flicker\(left\) -> left, right: rename the input; rule for left"
    with pytest.raises(TypeError, match=text):
        record.vjp(left=lambda g_left, left: g_left * left)
    assert record.rules == {}


def test_a_front_is_declared_once() -> None:
    """A second function under a public name is refused, and the first stays."""
    assert cd.stack is FRONTS["stack"].function  # asked for, and so declared
    first = FRONTS["stack"]

    def stack(tensors: Any) -> Any:
        """Another one."""

    with pytest.raises(ValueError, match="front 'stack' is declared twice"):
        public(stack)
    assert FRONTS["stack"] is first


def test_an_index_that_is_out_of_date_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that its module does not declare is named with that module."""
    monkeypatch.setitem(index.OPERATORS_IN, "flicker", "candelabra._operators.primitives.pointwise")
    text = r"flicker: candelabra\.ops\.pointwise declares no such operator, though the index says so"
    with pytest.raises(KeyError, match=text):
        OPERATORS["flicker"]


def test_a_name_that_a_namespace_lacks() -> None:
    """The package's name and the attribute's are in the error."""
    import candelabra.linalg

    with pytest.raises(AttributeError, match=r"module 'candelabra\.linalg' has no attribute 'inverse_of_nothing'"):
        _ = candelabra.linalg.inverse_of_nothing


def test_a_method_that_its_module_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index out of date is named when the method is looked up."""
    monkeypatch.setitem(index.METHODS_IN, "flicker", "candelabra._operators.primitives.pointwise")
    text = r"the index says that candelabra\.ops\.pointwise declares Tensor\.flicker, but it does not"
    with pytest.raises(AttributeError, match=text):
        _finder("flicker", "candelabra._operators.primitives.pointwise")()


def test_what_is_no_tensor_is_refused_by_any_operator() -> None:
    """Lists without tensors and indices that are none are told by the operator's own name."""
    x = cd.ones(3)
    with pytest.raises(RuntimeError, match=r"cat\(\): expected a non-empty list of Tensors in argument 'tensors'"):
        OPERATORS["cat"].function((), 0)
    with pytest.raises(TypeError, match=r"index_select\(\): argument 'index' must be Tensor, not int"):
        OPERATORS["index_select"].function(x, 0, 1)


def test_an_operator_whose_result_the_tensor_cannot_hold_has_no_in_place_form() -> None:
    """A plugin's operator that makes complex numbers of real ones is not run in place; the tensor is as it was."""
    with journal.Recording() as recording:

        @operator(pointwise, result=lambda d: d.to_complex())
        def flickering(input: Tensor) -> Tensor:
            """The input on a circle."""
            return cd.polar(cd.ones_like(input), input)

    x = cd.ones(3)
    try:
        assert flickering(x).dtype is cd.complex64
        with pytest.raises(
            RuntimeError, match="result type ComplexFloat can't be cast to the desired output type Float"
        ):
            flickering.form("inplace")(x)
    finally:
        recording.undo()
    assert (x.tolist(), x._version[0]) == ([1.0, 1.0, 1.0], 0)
    assert "flickering" not in OPERATORS


def test_a_rule_may_be_an_operator_on_names() -> None:
    """``applied`` binds an operator as a rule, for tensors and for a number in an operand's place, modes seen."""

    def dimmed(input: Any, other: Any) -> Any:
        """``input * other``."""
        return input * other

    dimmed.__annotations__ = {"input": "Tensor", "other": "Tensor | Number", "return": "Tensor"}
    record = operator(pointwise, method=False)(dimmed)
    try:
        record.vjp(input=applied(OPERATORS["mul"], "g", "other"), other=applied(OPERATORS["mul"], "g", "input"))
        x, y = cd.tensor([2.0, 3.0], requires_grad=True), cd.tensor([5.0, 7.0], requires_grad=True)
        record(x, y).sum().backward()
        assert (x.grad.tolist(), y.grad.tolist()) == ([5.0, 7.0], [2.0, 3.0])
        (number,) = cd.autograd.grad(record(x, 4.0).sum(), x)
        assert number.tolist() == [4.0, 4.0]
        (first,) = cd.autograd.grad(record(x, y).sum(), x, create_graph=True)
        (second,) = cd.autograd.grad(first.sum(), y)
        assert second.tolist() == [1.0, 1.0]
        assert not cd.autograd.grad(record(x, y).sum(), x)[0].requires_grad
        with pytest.raises(TypeError, match="'lamp' is neither an input, an output, a gradient"):
            record.vjp(input=applied(OPERATORS["mul"], "g", "lamp"))
    finally:
        del OPERATORS["dimmed"]


def test_every_primitive_says_whether_it_is_differentiable() -> None:
    """A primitive has rules, or a reason why not."""
    silent = [n for n, r in OPERATORS.items() if r.body is None and not r.rules and r.not_differentiable is None]
    assert silent == []


def test_no_kernel_without_a_record() -> None:
    """Every name in the reference's table is an operator's, or one's in-place form."""
    kernels = open_device().kernels
    assert [k for k in kernels if k not in OPERATORS and k.removesuffix("_") not in OPERATORS] == []
