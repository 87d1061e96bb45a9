"""Checks of the declarations of operators, derivatives, overload sets and public callables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra._device import open_device
from candelabra.library import (
    ENTRIES,
    METHODS,
    OPERATORS,
    Operator,
    applied,
    entry_named,
    operator,
    overloads,
    pointwise,
    public,
    record,
)


class Twins(NamedTuple):
    """A pair of results."""

    left: Any
    right: Any


def fresh(**annotations: str) -> Callable[..., Any]:
    """Return a function ``flicker(input, other)`` with the given annotations."""

    def flicker(input: Any, other: Any) -> Any:
        """Shine sometimes."""
        ...

    flicker.__annotations__ = annotations
    return flicker


def undocumented() -> Callable[..., Any]:
    """Return the same function without a docstring."""
    made = fresh(input="Tensor", other="Tensor", **{"return": "Tensor"})
    made.__doc__ = None
    return made


def existing_name() -> Callable[..., Any]:
    """Return a function whose name is already an operator's."""

    def exp(input: Any) -> Any:
        """Return another exponential."""
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
        r"operator flicker: a docstring is required, as it is the documentation",
    ),
    "twice": (
        existing_name,
        ValueError,
        r"operator 'exp' is declared twice: first in candelabra\._operators\.[\w.]+, now in .*declarat",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_an_operator_with_a_mistake_is_refused(mistake: str) -> None:
    """The error names the operator and the missing part; the registry does not change."""
    make, error, text = REFUSED[mistake]
    known = OPERATORS["exp"]
    with pytest.raises(error, match=text):
        operator(pointwise)(make())
    assert "flicker" not in OPERATORS
    assert OPERATORS["exp"] is known
    assert not hasattr(cd, "flicker")


def joint(*arguments: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the argument of ``vjp``."""
    return arguments, {}


def single(**rules: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the rule as a keyword."""
    return (), rules


RULES: dict[str, tuple[tuple[tuple[Any, ...], dict[str, Any]], str]] = {
    "no pair": (
        joint("input", len),
        r"lerp\.vjp: a joint rule has the form vjp\(\(names…\), function\), got \('input', ",
    ),
    "not an input": (
        single(weird=lambda g: g),
        r"'weird' is not a differentiable input of lerp\(input, end, weight\) -> out; rule for weird: \(g\)",
    ),
    "unknown name": (
        single(input=lambda g, ouput: g * ouput),
        r"'ouput' is neither an input, an output, a gradient \(g\) nor an input's spec of lerp\(input, end, weight\)",
    ),
    "needs in a single rule": (single(input=lambda g, needs: g), r"'needs' is neither an input, an output"),
    "no gradient": (
        single(input=lambda out: out),
        r"a derivative must be linear in the gradient and use one of \['g'\]; rule for input: \(out\)",
    ),
    "default": (
        single(input=lambda g, out=None: g),
        r"only a gradient may have a default \(None: may be absent\), but 'out' has one; rule for input: \(g, out\)",
    ),
}


@pytest.mark.parametrize("mistake", RULES)
def test_a_derivative_with_a_mistake_is_refused(mistake: str) -> None:
    """The error quotes the rule and the signature; the operator's rules do not change."""
    lerp = OPERATORS["lerp"]
    (arguments, rules), text = RULES[mistake]
    before = dict(lerp.rules)
    with pytest.raises(TypeError, match=text):
        lerp.vjp(*arguments, **rules)
    assert lerp.rules == before


def test_an_input_may_not_have_an_outputs_name() -> None:
    """The name would be ambiguous in a rule."""

    def flicker(left: Any) -> Any:
        """Shine twice."""
        ...

    flicker.__annotations__ = {"left": "Tensor", "return": "Twins"}
    made: Operator[..., Any] = Operator(flicker, pointwise)
    text = r"'left' is both an input and an output of flicker\(left\) -> left, right: rename the input; rule for left"
    with pytest.raises(TypeError, match=text):
        made.vjp(left=lambda g_left, left: g_left * left)
    assert made.rules == {}


# -- public names -----------------------------------------------------------------------------------------------------
def numel(input: Tensor) -> int:
    """Return a size, under a name that is already declared."""
    return 0


TWICE: dict[str, tuple[Callable[[], Any], str]] = {
    "a callable": (lambda: public(numel), "numel"),
    "an alias": (lambda: public(aliases=("arccos",))(fresh(input="Tensor", other="Tensor")), "arccos"),
    "a method": (
        lambda: public(is_function=False, method="tolist")(fresh(input="Tensor", other="int")),
        "Tensor.tolist",
    ),
    "a method's in-place form": (lambda: public(is_function=False, name="exp_")(numel), "Tensor.exp_"),
    "an overload set": (lambda: overloads("numel", record("exp")), "numel"),
    "an operator": (lambda: operator(pointwise, aliases=("numel",))(undefined()), "numel"),
}


def undefined() -> Callable[..., Any]:
    """Return an undeclared function ``flicker``."""
    return fresh(input="Tensor", other="Tensor", **{"return": "Tensor"})


@pytest.mark.parametrize("second", TWICE)
def test_a_public_name_is_declared_once(second: str) -> None:
    """A second declaration of a function or method is refused, quotes both modules, and has no effect."""
    declare, name = TWICE[second]
    assert entry_named(name) is not None  # This access declares it.
    assert entry_named("arccos") is not None
    entries, methods, operators = dict(ENTRIES), dict(METHODS), OPERATORS.present()
    text = (
        rf"the public name '{name}' is declared twice: first in candelabra\._operators\.[\w.]+, now in .*declarations"
    )
    with pytest.raises(ValueError, match=text):
        declare()
    assert (dict(ENTRIES), dict(METHODS), OPERATORS.present()) == (entries, methods, operators)


def test_a_method_may_not_hide_an_attribute_of_tensor() -> None:
    """Attributes that are not declared are protected; the refusal has no effect."""
    with pytest.raises(ValueError, match=r"operator 'backward' would hide Tensor\.backward: give it method=False"):
        public(name="backward")(fresh(input="Tensor", other="Tensor"))
    assert "backward" not in METHODS
    assert "backward" not in ENTRIES


def test_a_public_callable_needs_annotations_and_a_docstring() -> None:
    """As for operators, the signature is the schema. What a call uses is one of four words."""

    def flicker(input: Tensor, other=None) -> Tensor:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Shine."""
        return input

    with pytest.raises(TypeError, match="operator flicker: parameter 'other' has no annotation"):
        public(flicker)
    text = "public callable flicker: a docstring is required, as it is the documentation"
    with pytest.raises(TypeError, match=text):
        public(undocumented())
    text = r"flicker: expected uses= to be one of elements, memory, dtype, object, got 'strides'"
    with pytest.raises(ValueError, match=text):
        public(uses="strides")(undocumented())
    assert "flicker" not in ENTRIES


def test_what_a_recording_takes_back() -> None:
    """Functions, aliases and methods of an operator, a set and a callable are removed; another entry's method stays."""
    with journal.Recording() as recording:

        @operator(pointwise, aliases=("flickering", "special.flicker"))
        def flicker(input: Tensor) -> Tensor:
            """Return the input."""
            return input * 1

        overloads("flicker_set", flicker, inplace=True)

        @public(is_function=False)
        def to_flicker(input: Tensor) -> str:
            """Return a text."""
            return "flicker"

    x = cd.ones(2)
    try:
        assert cd.flicker(x).tolist() == cd.flickering(x).tolist() == x.flickering().tolist() == [1.0, 1.0]
        assert cd.special.flicker(x).tolist() == cd.flicker_set(x).tolist() == x.flicker_set_().tolist() == [1.0, 1.0]
        assert x.to_flicker() == "flicker"
    finally:
        recording.undo()
    assert {"flicker", "flickering", "special.flicker", "flicker_set"}.isdisjoint(ENTRIES)
    assert {"flicker", "flicker_", "flickering", "flicker_set", "flicker_set_", "to_flicker"}.isdisjoint(METHODS)
    assert not any(hasattr(x, name) for name in ("flickering", "to_flicker", "flicker_set_"))
    assert not hasattr(cd, "flicker_set")


UNASKED = '''
import candelabra as cd
from candelabra.library import public

def flicker(input: "Tensor") -> "Tensor":
    """Another function of a name that nobody has asked for yet."""

flicker.__annotations__ = {"input": "Tensor", "return": "Tensor"}
try:
    public(name="combinations")(flicker)
except ValueError as error:
    print(error)
print(cd.combinations(cd.tensor([1, 2])).tolist())
'''


def test_a_name_that_nobody_asked_for_yet_is_taken_too() -> None:
    """The index's declaration is loaded first, and the second declaration is refused immediately."""
    done = subprocess.run([sys.executable, "-c", UNASKED], capture_output=True, text=True, check=True)
    assert "the public name 'combinations' is declared twice" in done.stdout
    assert "[[1, 2]]" in done.stdout


# -- arguments of operators -------------------------------------------------------------------------------------------
def test_what_is_no_tensor_is_refused_by_any_operator() -> None:
    """The errors for lists without tensors and for invalid indices have the operator's name."""
    x = cd.ones(3)
    with pytest.raises(ValueError, match=r"cat\(\): expected a non-empty list of Tensors"):
        OPERATORS["cat"].function((), 0)
    with pytest.raises(TypeError, match=r"index_select\(\): argument 'index' must be Tensor, not int"):
        OPERATORS["index_select"].function(x, 0, 1)


def test_an_operator_whose_result_the_tensor_cannot_hold_has_no_in_place_form() -> None:
    """An operator of a plugin with a complex result for real input is not run in place; the tensor does not change."""
    with journal.Recording() as recording:

        @operator(pointwise, result=lambda d: d.to_complex())
        def flickering(input: Tensor) -> Tensor:
            """Return the input on a circle."""
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
    assert (x.tolist(), x._version) == ([1.0, 1.0, 1.0], 0)
    assert "flickering" not in OPERATORS


def test_a_rule_may_be_an_operator_on_names() -> None:
    """``applied`` binds an operator as a rule, for tensors and for a Python number as an operand; modes apply."""

    def dimmed(input: Any, other: Any) -> Any:
        """Return ``input * other``."""
        return input * other

    dimmed.__annotations__ = {"input": "Tensor", "other": "Tensor | Number", "return": "Tensor"}
    with journal.Recording() as recording:
        made = operator(pointwise, method=False)(dimmed)
    try:
        made.vjp(input=applied(OPERATORS["mul"], "g", "other"), other=applied(OPERATORS["mul"], "g", "input"))
        x, y = cd.tensor([2.0, 3.0], requires_grad=True), cd.tensor([5.0, 7.0], requires_grad=True)
        made(x, y).sum().backward()
        assert (x.grad.tolist(), y.grad.tolist()) == ([5.0, 7.0], [2.0, 3.0])
        (number,) = cd.autograd.grad(made(x, 4.0).sum(), x)
        assert number.tolist() == [4.0, 4.0]
        (first,) = cd.autograd.grad(made(x, y).sum(), x, create_graph=True)
        (second,) = cd.autograd.grad(first.sum(), y)
        assert second.tolist() == [1.0, 1.0]
        assert not cd.autograd.grad(made(x, y).sum(), x)[0].requires_grad
        with pytest.raises(TypeError, match="'lamp' is neither an input, an output, a gradient"):
            made.vjp(input=applied(OPERATORS["mul"], "g", "lamp"))
    finally:
        recording.undo()


def test_every_primitive_says_whether_it_is_differentiable() -> None:
    """A primitive has rules, or a reason for their absence."""
    silent = [n for n, r in OPERATORS.items() if r.body is None and not r.rules and r.not_differentiable is None]
    assert silent == []


def test_no_kernel_without_a_record() -> None:
    """Every name in the reference's table is an operator or its in-place form."""
    kernels = open_device().kernels
    assert [k for k in kernels if k not in OPERATORS and k.removesuffix("_") not in OPERATORS] == []
