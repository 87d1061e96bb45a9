"""The grammar of declarations: forms, names, keywords, and kinds of arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, _journal
from candelabra._records.registry import OPERATORS
from candelabra.library import by, operator, record, shape_of


@pytest.fixture
def declared() -> Iterator[None]:
    """Remove the declarations of a test after it."""
    with _journal.Recording() as recording:
        yield
    recording.undo()


def rows(input: Tensor, *sizes: Any) -> Tensor:
    """Return ones of the given sizes."""
    return input.new_ones(sizes)


def in_grammar(annotations: dict[str, str], function: Any, rule: Any, **options: Any) -> Any:
    """Return a record of a function with annotations."""
    function.__annotations__ = {**annotations, "return": "Tensor"}
    return operator(by(rule), **options)(function)


@pytest.mark.usefixtures("declared")
def test_a_composite_may_take_sizes_one_by_one_as_a_sequence_or_by_name() -> None:
    """The body and the rule get a tuple; ``out=`` works with each form."""
    found = in_grammar({"input": "Tensor", "sizes": "Shape"}, rows, lambda input, sizes: sizes).function
    x = cd.ones(1)
    out = cd.empty(0)
    for made in (found(x, 2, 3), found(x, (2, 3)), found(x, [2, 3]), found(x, sizes=(2, 3)), found(x, 2, 3, out=out)):
        assert made.shape == (2, 3)
    assert out.shape == (2, 3)


@pytest.mark.usefixtures("declared")
def test_an_operator_has_the_name_that_is_given() -> None:
    """The name applies to the method, the property or the function."""

    def half(input: Any) -> Any:
        """Return one half."""
        return input / 2

    made = in_grammar({"input": "Tensor"}, half, shape_of, name="halved", is_function=False, is_property=True)
    assert made.name == "halved"
    assert OPERATORS["halved"] is made
    assert cd.ones(2).halved.tolist() == [0.5, 0.5]  # type: ignore[attr-defined]
    assert not hasattr(cd, "halved")


@pytest.mark.parametrize(
    ("name", "arguments", "canonical"),
    [
        ("permute", (-1, 0), ((1, 0),)),
        ("squeeze", (), ((),)),
        ("expand", (2, -1, 3), ((2, 2, 3),)),
        ("cat", (-1,), (1,)),
    ],
)
def test_canonical_arguments_need_no_conversion(name: str, arguments: Any, canonical: Any) -> None:
    """The canonical form accepts the converted arguments by position."""
    x = cd.arange(6.0).reshape(2, 3)
    first = [x, x] if name == "cat" else x
    found = record(name)
    assert found.canonical(first, *canonical).tolist() == found.function(first, *arguments).tolist()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.0, TypeError, "argument 'start' must be int, not float"),
        (True, TypeError, "argument 'start' must be int, not bool"),
        (cd.ones(()), RuntimeError, "start must be an 0-dim integral Tensor."),
        (cd.tensor([1]), RuntimeError, "start must be an 0-dim integral Tensor."),
    ],
)
def test_what_is_no_integer_is_refused(value: Any, error: type[Exception], text: str) -> None:
    """Floats, bools, and tensors without a single integer are errors."""
    with pytest.raises(error, match=text):
        cd.narrow(cd.ones(3), 0, value, 1)


def test_integers_of_any_library_are_integers() -> None:
    """NumPy scalars and 0-d arrays, and 0-d tensors, are accepted."""
    x = cd.arange(4)
    for start in (1, np.int16(1), np.array(1), cd.tensor(1), cd.tensor(1, dtype=cd.uint8)):
        assert x.narrow(0, start, 2).tolist() == [1, 2]


def test_out_shares_no_memory_where_the_record_says_so() -> None:
    """An overlap with an input that is read element by element is an error; another compatible dtype is accepted."""
    x = cd.arange(4.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        cd.stack([x[:2], x[2:]], out=x)
    assert cd.stack([x[:2], x[2:]], out=cd.empty(0, dtype=cd.float64)).dtype is cd.float64


def test_a_view_operators_form_in_place_gives_the_tensor_another_shape() -> None:
    """This holds for composites too; no element is written."""
    x = cd.arange(6).reshape(2, 3).clone()
    assert x.swapaxes_(0, -1) is x
    assert x.shape == (3, 2)
    assert x.squeeze_().unsqueeze_(1).shape == (3, 1, 2)
    assert cd.as_strided_(x, (2,), (3,)).tolist() == [0, 3]


@pytest.mark.usefixtures("declared")
def test_an_argument_may_select_the_in_place_form() -> None:
    """``inplace="argument"`` adds the argument, by position or keyword, and no in-place method."""

    def halved(input: Any) -> Any:
        """Return one half."""
        return input / 2

    annotations = {"input": "Tensor"}
    made = in_grammar(annotations, halved, shape_of, method=False, inplace="argument", out=False)
    x = cd.tensor([2.0, 4.0])
    assert made(x, inplace=False) is not x
    assert made(x, True) is x
    assert x.tolist() == [1.0, 2.0]
    y = cd.ones(2, requires_grad=True)
    made(y * 1, inplace=True).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [0.5, 0.5]
    assert made.methods() == {}
    assert str(made.signatures()[0]) == "(input: Tensor, inplace: bool = False) -> Tensor"


@pytest.mark.usefixtures("declared")
def test_the_check_of_a_composite_runs_if_its_body_raises() -> None:
    """The rule runs first, then the check of values; if both pass, the body's own error is raised."""

    def chosen(input: Any, index: Any) -> Any:
        """Return the rows at the indices."""
        if index.numel() == 5:
            raise RuntimeError("five are too many")
        return input.index_select(0, index)

    def check(input: Tensor, index: Tensor) -> None:
        if int(index.amax().item()) >= len(input):
            raise IndexError(f"there is no row {int(index.amax().item())}")

    annotations = {"input": "Tensor", "index": "Index"}
    made = in_grammar(annotations, chosen, lambda input, index: shape_of(index), check=check, out=False)
    x = cd.arange(3.0)
    assert made(x, cd.tensor([2, 0])).tolist() == [2.0, 0.0]
    with pytest.raises(IndexError, match="there is no row 7"):
        made(x, cd.tensor([1, 7]))
    with pytest.raises(RuntimeError, match="five are too many"):
        made(x, cd.tensor([0, 1, 2, 0, 1]))


@pytest.mark.usefixtures("declared")
def test_a_parameter_may_have_the_name_op() -> None:
    """Generated code has no name that hides it."""

    def reduced(input: Any, op: Any) -> Any:
        """Return the input if the operation is "sum"."""
        if op != "sum":
            raise ValueError(f"no {op}")
        return input.clone()

    annotations = {"input": "Tensor", "op": "str"}
    made = in_grammar(annotations, reduced, lambda input, op: shape_of(input), accepts="floating").function
    x = cd.ones(2, requires_grad=True)
    made(x, op="sum").sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="no product"):
        made(x, "product")
    with pytest.raises(TypeError, match=r"argument .input. .* must be Tensor, not int"):
        made(3, "sum")
