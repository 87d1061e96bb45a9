"""How an overload set selects a member, and which keywords the grammar adds to public callables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra._codegen.overloading import fits
from candelabra._records.schema import KINDS, PLAIN, REQUIRED, Parameter
from candelabra.library import (
    OPERATORS,
    Operator,
    OverloadSet,
    PublicCallable,
    bind,
    entry_named,
    member_for,
    operator,
    overloads,
    pointwise,
    public,
    title_of,
)

Record = Operator[..., Any]


@pytest.fixture
def recording() -> Iterator[list[Any]]:
    """Record declarations, and undo them after the test in reverse order."""
    kept: list[Any] = []
    yield kept
    for each in reversed(kept):
        each.undo()


@pytest.fixture
def members(recording: list[Any]) -> tuple[Record, Record, Record]:
    """Declare records that add one to a tensor, a number along a dim, and a tensor."""
    with journal.Recording() as overload_set:

        @operator(pointwise, public=False)
        def plus_one(input: Tensor) -> Tensor:
            """Return the input plus 1."""
            return input + 1

        @operator(pointwise, public=False)
        def plus_along(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
            """Return the input plus the dim."""
            return input + dim + (10 if keepdim else 0)

        @operator(pointwise, public=False)
        def plus_tensor(input: Tensor, other: Tensor) -> Tensor:
            """Return the sum."""
            return input + other

    recording.append(overload_set)
    return OPERATORS["plus_one"], OPERATORS["plus_along"], OPERATORS["plus_tensor"]


@pytest.fixture
def overload_set(recording: list[Any], members: tuple[Record, ...]) -> OverloadSet:
    """Declare a set of the three, with in-place forms and an alias."""
    with journal.Recording() as declared:
        found = overloads("plus", *members, inplace=True, aliases=("plus_alias",))
    recording.append(declared)
    return found


X = [1.0, 2.0]


def x() -> Tensor:
    """Return a new vector."""
    return cd.tensor(X)


CALLS: dict[str, tuple[Callable[[], Tensor], str, list[float]]] = {
    "alone": (lambda: cd.plus(x()), "plus_one", [2, 3]),
    "a dim": (lambda: cd.plus(x(), 0), "plus_along", [1, 2]),
    "a negative dim is canonical": (lambda: cd.plus(x(), -1), "plus_along", [1, 2]),
    "a dim by keyword": (lambda: cd.plus(x(), dim=0, keepdim=True), "plus_along", [11, 12]),
    "NumPy's names": (lambda: cd.plus(x(), axis=0, keepdims=True), "plus_along", [11, 12]),
    "a tensor": (lambda: cd.plus(x(), x()), "plus_tensor", [2, 4]),
    "all by keyword": (lambda: cd.plus(input=x(), other=x()), "plus_tensor", [2, 4]),
    "as a method": (lambda: x().plus(x()), "plus_tensor", [2, 4]),
    "an alias": (lambda: cd.plus_alias(x()), "plus_one", [2, 3]),
    "in place": (lambda: x().plus_(x()), "plus_tensor", [2, 4]),
    "an alias in place": (lambda: x().plus_alias_(0, True), "plus_along", [11, 12]),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_arguments_choose(overload_set: OverloadSet, call: str) -> None:
    """The number, kinds and names of arguments select; aliases, methods and in-place forms select the same member."""
    function, _, expected = CALLS[call]
    assert function().tolist() == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "name"),
    [((x(),), {}, "plus_one"), ((x(), 1), {}, "plus_along"), ((x(),), {"other": x()}, "plus_tensor"),
     ((x(),), {"out": x()}, "plus_one"), ((x(), np.int64(0)), {}, "plus_along")],
)  # fmt: skip
def test_the_member_that_serves_a_call(overload_set: OverloadSet, args: Any, kwargs: Any, name: str) -> None:
    """It is the first that matches the call, also with ``out=`` and with scalars of an array library."""
    assert member_for(overload_set, args, kwargs).name == name


def test_out_goes_to_the_member(overload_set: OverloadSet) -> None:
    """The result is the tensor that was passed."""
    out = cd.empty(2)
    assert cd.plus(x(), x(), out=out) is out
    assert out.tolist() == [2.0, 4.0]


def test_in_place_forms_write_and_are_recorded(overload_set: OverloadSet) -> None:
    """The target is the tensor itself, its version is incremented, and gradients are propagated."""
    leaf = cd.tensor(X, requires_grad=True)
    target = leaf * 1
    version = target._version
    assert target.plus_(0) is target
    assert target._version > version
    target.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0, 1.0]


def test_a_call_that_fits_nothing_lists_the_overloads(overload_set: OverloadSet) -> None:
    """The error has the kinds of the arguments; if one member differs only in a kind, its own error is raised."""
    with pytest.raises(
        TypeError, match=r"plus\(\) received an invalid combination of arguments - got \(Tensor, str\)"
    ) as e:
        cd.plus(x(), "text")
    text = str(e.value)
    assert "\n * (input: Tensor, *, out=None) -> Tensor" in text
    assert "\n * (input: Tensor, dim: Dim, keepdim: bool = False, *, out=None) -> Tensor" in text
    with pytest.raises(TypeError, match=r"got \(Tensor, no_such=int\), but expected one of:"):
        cd.plus(x(), no_such=1)
    with pytest.raises(TypeError, match=r"got \(\), but expected one of:"):
        cd.plus()
    with pytest.raises(TypeError, match=r"plus\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        cd.plus("text")
    with pytest.raises(TypeError, match=r"got \(Tensor, Tensor, Tensor, Tensor\)"):
        cd.plus(x(), x(), x(), x())


def test_a_dim_may_not_be_given_twice(overload_set: OverloadSet) -> None:
    """A dim passed by position and by keyword matches no overload."""
    with pytest.raises(TypeError, match=r"got \(Tensor, int, dim=int\)"):
        cd.plus(x(), 0, dim=0)


def test_a_member_may_accept_some_of_its_parameters(recording: list[Any], members: tuple[Record, ...]) -> None:
    """The other parameters keep their defaults; an unknown parameter is refused at the declaration."""
    _, along, _ = members
    with journal.Recording() as declared:
        found = overloads("plus_some", (along, "input dim"), doc="Some of it.")
    recording.append(declared)
    assert cd.plus_some(x(), -1).tolist() == [1, 2]
    assert found.doc == cd.plus_some.__doc__ == "Some of it."
    with pytest.raises(TypeError, match=r"plus_some\(\) received an invalid combination of arguments"):
        cd.plus_some(x(), 0, True)
    text = r"overload set plus_more: plus_along\(input, dim, keepdim\) has no parameter depth, width"
    with pytest.raises(TypeError, match=text):
        overloads("plus_more", (along, "input depth width"))
    assert entry_named("plus_more") is None


def test_a_plain_function_may_be_an_overload(recording: list[Any], members: tuple[Record, ...]) -> None:
    """An overload need not be a record; the documentation of the set is that of its members."""

    def plus_text(input: Tensor, text: str) -> str:
        """Return the text and the size."""
        return f"{text} {input.numel()}"

    with journal.Recording() as declared:
        found = overloads("plus_any", members[0], plus_text)
    recording.append(declared)
    assert cd.plus_any(x(), "of") == "of 2"
    assert cd.plus_any(x()).tolist() == [2.0, 3.0]
    assert found.doc == "Return the input plus 1.\n\nReturn the text and the size."
    assert [str(s.entry) for s in found.signatures()] == ["<operator plus_one>", "<public callable plus_text>"]
    assert repr(found) == "<overload set plus_any: plus_one, plus_text>"
    assert found(x(), "of") == found.function(x(), "of")


def test_a_member_without_a_public_name(recording: list[Any]) -> None:
    """A callable declared with ``public=False`` has the grammar's keywords, and its errors have the set's name."""

    def square_of(size: int, *, dtype: DType | None = None, device: Device = None) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        """Return a square of ones."""
        return cd.ones(size, size, dtype=dtype, device=device)

    def square_by(input: Tensor) -> Tensor:
        """Return the square of the input."""
        return input * input

    by_size, by_tensor = public(public=False, factory=True)(square_of), public(public=False, out=True)(square_by)
    assert entry_named("square_of") is entry_named("square_by") is None
    assert not hasattr(Tensor, "square_by")
    with journal.Recording() as declared:
        overloads("squared", by_size, by_tensor, method=False)
    recording.append(declared)
    out = cd.empty(0)
    assert cd.squared(x(), out=out) is out
    assert out.tolist() == by_tensor(x()).tolist() == [1.0, 4.0]
    assert cd.squared(2, requires_grad=True, layout=cd.strided, pin_memory=False).requires_grad
    assert cd.squared(1, dtype=cd.int8).dtype is cd.int8
    filled = cd.empty(2, 2, dtype=cd.float64)
    assert cd.squared(2, out=filled) is filled
    assert filled.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(TypeError, match=r"squared\(\): argument 'layout' must be candelabra.layout, not str"):
        cd.squared(2, layout="sparse")
    with pytest.raises(TypeError, match=r"squared\(\) received an invalid combination of arguments") as e:
        cd.squared(2, 3)
    assert "\n * (size: int, *, dtype: DType | None = None, device: Device = None, out=None, layout=None" in str(
        e.value
    )


def test_a_set_in_a_namespace(recording: list[Any], members: tuple[Record, ...]) -> None:
    """The name contains a dot; only an alias in the top-level namespace is a method."""
    with journal.Recording() as declared:
        found = overloads("special_plus", *members, namespace="special", aliases=("plus_special",))
    recording.append(declared)
    assert title_of(found) == found.public_name == "special.plus"
    assert cd.special.plus(x()).tolist() == x().plus_special().tolist() == [2.0, 3.0]
    assert not any(hasattr(Tensor, name) for name in ("plus", "special_plus"))


def parameter(annotation: str, default: Any = REQUIRED) -> Parameter:
    """Return a parameter with that annotation."""
    return Parameter("value", KINDS.get(annotation, PLAIN), annotation, default, False)


TENSOR = cd.ones(1)
FITTING: list[tuple[str, list[Any], list[Any]]] = [
    ("Tensor", [TENSOR], [1, None, [TENSOR]]),
    ("Tensor | None", [TENSOR, None], [1, "text"]),
    ("Tensor | Number", [TENSOR, 1, 2.5, True, 1j, np.float32(1)], ["text", None, [1]]),
    ("Tensor | Number | None", [TENSOR, 1, None], ["text"]),
    ("Sequence[Tensor]", [[TENSOR], (TENSOR,)], [TENSOR, None]),
    ("Index", [TENSOR], [1, None]),
    ("Dim", [1, np.int64(1)], [True, 1.5, TENSOR, None, (1,)]),
    ("Dim | None", [1, None], [True, "text"]),
    ("Dims", [1, (0, 1), [0], None], ["text", 1.5]),
    ("Shape", [2, (2, 3)], ["text", None]),
    ("DType | None", [cd.float32, float, None], ["float32", 1]),
    ("bool", [True], [1, "text", None]),
    ("int", [1], [True, 1.5, "text"]),
    ("float", [1, 1.5, True], ["text", None]),
    ("str", ["text"], [1, None]),
    ("str | None", ["text", None], [1]),
    ("Sequence[int]", [2, (1, 2)], ["text", None]),
    ("Anything", ["text", 1, TENSOR], [None]),
]


@pytest.mark.parametrize(("annotation", "fitting", "others"), FITTING, ids=[row[0] for row in FITTING])
def test_what_fits_a_parameter(annotation: str, fitting: list[Any], others: list[Any]) -> None:
    """The annotation determines the kind; None matches if the annotation or the default allows it."""
    p = parameter(annotation)
    assert [value for value in fitting if not fits(p, value)] == []
    assert [value for value in others if fits(p, value)] == []
    assert fits(parameter(annotation, None), None)


def test_binding_a_call() -> None:
    """The result has each parameter's argument, with omitted ones marked, or is None if the call does not match."""
    size = Parameter("size", "shape", "Shape", REQUIRED, False, True)
    first, last = parameter("Tensor"), Parameter("flag", PLAIN, "bool", False, True)
    assert bind((first, last), (1,), {"flag": True}, False) == [(first, 1), (last, True)]
    assert bind((first, last), (1, 2), {}, False) is None
    assert bind((first, last), (), {}, False) is None
    assert bind((first,), (1,), {"value": 1}, False) is None
    assert bind((first,), (1,), {"out": 1}, False) is None
    assert bind((first,), (1,), {"out": 1}, True) is not None
    assert bind((first, size), (1, 2, 3), {}, False) == [(first, 1), (size, (2, 3))]
    assert bind((first, size), (1, (2, 3)), {}, False) == [(first, 1), (size, (2, 3))]
    assert bind((first, size), (1,), {}, False) == [(first, 1)]


# -- public callables -------------------------------------------------------------------------------------------------
def test_the_keywords_of_the_grammar(recording: list[Any]) -> None:
    """``axis`` for ``dim``, sizes as separate arguments, ``out``; without them the function itself is public."""

    def counted(input: Tensor, dim: int, *, keepdim: bool = False) -> Tensor:
        """Return sums."""
        return input.sum(dim, keepdim)

    def sized(*size: Shape) -> tuple[int, ...]:  # type: ignore[name-defined]  # noqa: F821
        """Return the sizes."""
        return size

    def plain(input: Tensor) -> Tensor:
        """Return the input."""
        return input

    with journal.Recording() as declared:
        count, sizes = public(out=True)(counted), public(method=False)(sized)
        assert public(plain).__wrapped__ is plain  # type: ignore[attr-defined]
    recording.append(declared)
    matrix = cd.ones(2, 3)
    assert count(matrix, axis=1, keepdims=True).shape == (2, 1)
    out = cd.empty(0)
    assert count(matrix, 0, out=out) is out
    assert out.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TypeError, match=r"counted\(\) missing 1 required positional argument: 'dim'"):
        count(matrix)
    assert sizes(2, 3) == sizes((2, 3)) == sizes([2, 3]) == sizes(size=(2, 3)) == (2, 3)
    entry = entry_named("counted")
    assert isinstance(entry, PublicCallable)
    assert str(entry.signatures()[0]) == "(input: Tensor, dim: int, *, keepdim: bool = False, out=None) -> Tensor"
