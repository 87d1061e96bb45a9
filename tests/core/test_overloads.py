"""Overload sets with members that differ by present arguments, and in-place forms of composites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra._records.accepts import INSTEAD
from candelabra._records.registry import OPERATORS

from tests.frames import frames


@pytest.mark.parametrize("name", ["add", "sub", "div"])
def test_a_plain_call_of_an_overload_set_enters_no_more_functions_than_its_record(name: str) -> None:
    """The set's entry is the record's own, as a function, as a method and in place."""
    a, b = cd.ones(3), cd.ones(3)
    record = OPERATORS[name]
    public, method = getattr(cd, name), getattr(a, name)
    assert frames(lambda: public(a, b)) == frames(lambda: record.function(a, b))
    assert frames(lambda: method(b)) == frames(lambda: record.function(a, b))
    inplace, of_record = getattr(a, name + "_"), record.form("inplace")
    assert frames(lambda: inplace(b)) == frames(lambda: of_record(a, b))


def test_a_keyword_of_its_own_chooses_an_overload() -> None:
    """The function, the method, the in-place form and out= agree; None counts as omitted."""
    a, b, out = cd.tensor([4.0, -9.0]), cd.tensor([2.0, 2.0]), cd.empty(2)
    assert cd.add(a, b, alpha=3).tolist() == [10.0, -3.0]
    assert a.sub(b, alpha=3).tolist() == [-2.0, -15.0]
    assert cd.add(a, b, alpha=None).tolist() == [6.0, -7.0]
    assert cd.add(input=a, other=b, alpha=2, out=out) is out
    assert out.tolist() == [8.0, -5.0]
    assert cd.div(a, b, rounding_mode="floor").tolist() == [2.0, -5.0]
    assert cd.div(a, b, rounding_mode="trunc").tolist() == [2.0, -4.0]
    assert cd.div(a, b, rounding_mode=None).tolist() == [2.0, -4.5]
    assert a.add_(b, alpha=2) is a
    assert a.tolist() == [8.0, -5.0]
    assert cd.explain("add", a, b, alpha=2).operator == "add_scaled"
    assert cd.explain("add_", a, b).operator == "add_"


def test_fewer_arguments_choose_an_overload() -> None:
    """where() with a condition alone gives indices; with two arguments it matches no overload."""
    condition = cd.tensor([[True, False], [True, True]])
    assert [i.tolist() for i in cd.where(condition)] == [[0, 1, 1], [0, 0, 1]]
    assert [i.tolist() for i in cd.where(cd.tensor(True))] == [[0]]
    assert cd.where(condition=condition, input=1, other=0).tolist() == [[1, 0], [1, 1]]
    with pytest.raises(TypeError, match=r"where\(\) received an invalid combination of arguments - got \(condition=T"):
        cd.where(condition, 1)
    with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'other'"):
        cd.add(cd.ones(1))
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        cd.add(cd.ones(1), 1, beta=2)


def test_errors_say_the_public_name() -> None:
    """The errors do not have the member's name."""
    with pytest.raises(RuntimeError, match=r"^masked_fill\(\): mask expected to be a boolean tensor"):
        cd.ones(2).masked_fill(cd.ones(2), 1)
    with pytest.raises(TypeError, match=r"^masked_fill\(\): argument 'value' \(position 3\) must be Tensor or Number"):
        cd.ones(2).masked_fill_(cd.tensor(True), "1")


# -- in-place forms of composites -------------------------------------------------------------------------------------
def test_an_in_place_form_of_in_place_operators_writes_through_views_and_is_recorded() -> None:
    """Values and derivatives equal those of the functional form."""
    for change in (lambda x: x.clamp_(-1, 1), lambda x: x.add_(x.detach(), alpha=2), lambda x: x.div_(2)):
        x = cd.tensor([[-2.0, 0.5], [3.0, 1.0]], requires_grad=True)
        y = x * 1
        change(y[0])
        y.sum().backward()
        assert x.grad is not None
        assert x.grad[1].tolist() == [1.0, 1.0]
    x = cd.tensor([-2.0, 0.5], requires_grad=True)
    (x * 1).clamp_(-1, 1).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x.clamp_(0, 1.5), "result type Float can't be cast to the desired output type Long"),
        (lambda x: x.clamp_(0, cd.ones(3, dtype=cd.int64)), r"must match the size of tensor b \(3\)"),
        (lambda x: x.clamp_(4, cd.tensor([2.5, 2.5])), "result type Float can't be cast"),
        (lambda x: x.clamp_(), "At least one of 'min' or 'max' must not be None"),
        (lambda x: x.div_(2, rounding_mode="up"), "rounding_mode to be one of None, 'trunc', or 'floor'"),
        (lambda x: x.add_(x, alpha=0.5), "argument alpha must not be a floating point number"),
        (lambda x: x.sub_(cd.tensor([True, False]), alpha=2), "Subtraction, the `-` operator, with a bool tensor"),
        (lambda x: x.fill_(cd.ones(2)), "fill_ only supports 0-dimension value tensor"),
        (lambda x: x.fill_(1 << 80), "Overflow when unpacking long long"),
        (lambda x: x.fill_("1"), r"argument 'value' \(position 2\) must be Tensor or Number, not str"),
    ],
)
def test_an_in_place_form_that_raises_has_written_nothing(call: Callable[[cd.Tensor], Any], text: str) -> None:
    """Values and version do not change."""
    x = cd.tensor([1, 5])
    with pytest.raises((RuntimeError, TypeError, ValueError), match=text):
        call(x)
    assert x.tolist() == [1, 5]
    assert x._version == 0


def test_bools_are_refused_by_every_subtraction() -> None:
    """The error is that of sub."""
    x, mask = cd.ones(2), cd.tensor([True, False])
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        cd.rsub(x, mask)
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        cd.sub(mask, mask, alpha=2)
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        mask.sub_(mask, alpha=2)
    assert INSTEAD["sub"] == INSTEAD["rsub"]


# -- promotion --------------------------------------------------------------------------------------------------------
def test_numbers_combined_with_a_mask_are_promoted() -> None:
    """Two numbers have the dtype of a scalar expression of both, and the mask determines only the device."""
    mask = cd.tensor([True, False])
    assert cd.where(mask, 1, 0).dtype is cd.int64
    assert cd.where(mask, True, False).dtype is cd.bool
    assert cd.where(mask, 1, 2.5).tolist() == [1.0, 2.5]
    assert cd.where(mask, 1j, 2).dtype is cd.complex64
    assert [step.route for step in cd.explain("where", mask, 1, 2.5).steps] == ["promotion", "native"]


def test_a_masks_value_is_cast_to_the_dtype_of_the_tensor() -> None:
    """Floats are truncated for integers; a value out of range is refused."""
    whole, mask = cd.tensor([1, 2], dtype=cd.uint8), cd.tensor([True, False])
    assert whole.masked_fill(mask, 2.75).tolist() == [2, 2]
    assert whole.masked_fill(mask, 2.75).dtype is cd.uint8
    assert whole.masked_fill(mask, cd.tensor(7.5)).tolist() == [7, 2]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        whole.masked_fill_(mask, 300)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        cd.ones(2).masked_fill(mask, cd.tensor(1j))


def test_a_conjugate_in_a_derivative_is_taken_of_complex_numbers_only() -> None:
    """Real tensors and Python numbers are not conjugated."""
    z = cd.tensor([1 + 2j, 3j], requires_grad=True)
    (z * (2 - 1j)).sum().real.backward()
    assert z.grad.tolist() == [2 + 1j] * 2
    z.grad = None
    (z / cd.tensor([1j, 2j])).sum().real.backward()
    assert z.grad.tolist() == [1j, 0.5j]
    x = cd.tensor([3.0], requires_grad=True)
    (x * cd.tensor([2.0])).sum().backward()
    assert x.grad.tolist() == [2.0]
