"""Arguments of generated entries: optional masks and indices, corrections, variadic composites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import _journal as journal
from candelabra._operators.masked.reductions import masked_sum
from candelabra.library import by, explain, operator


@pytest.fixture(autouse=True)
def _remove_declared() -> Iterator[None]:
    """Remove the operators that a test declares."""
    with journal.Recording() as recording:
        yield
    recording.undo()


def declared(function: Callable[..., Any], **annotations: str) -> Callable[..., Any]:
    """Return the function with annotations as text, as in a module with ``from __future__ import annotations``."""
    function.__annotations__ = {**annotations, "return": "Tensor"}
    return function


def test_an_optional_mask_has_no_part_in_promotion() -> None:
    """The key has the input's dtype with a mask and without; uint8 is read as bool, other dtypes are refused."""
    x = cd.tensor([[1, 2], [3, 4]], dtype=cd.int8)
    mask = cd.tensor([True, False])
    assert masked_sum(x, 1).tolist() == [3, 7]
    assert masked_sum(x, 1, mask=mask).tolist() == [1, 3]
    assert masked_sum(x, 1, mask=mask.to(cd.uint8)).tolist() == [1, 3]
    assert "int8" in explain(masked_sum, x, 1, mask=mask).key
    assert "bool" not in explain(masked_sum, x, 1, mask=mask).key
    with pytest.raises(RuntimeError, match="mask expected to be a boolean tensor, but got a tensor with dtype"):
        masked_sum(x, 1, mask=x)


def test_an_optional_mask_may_be_saved_for_the_backward_pass() -> None:
    """A rule gets the mask, or None, and a later change of the mask is detected."""

    def flicker(input: Any, mask: Any = None) -> Any:
        """Return the input at the elements of the mask."""
        return input * 1 if mask is None else input * mask

    record = operator(by(lambda input, mask: input.shape))(declared(flicker, input="Tensor", mask="Mask | None"))
    record.vjp(input=lambda g, mask: g * 3 if mask is None else g * mask * 2)
    x, mask = cd.ones(3, requires_grad=True), cd.tensor([True, False, True])
    assert cd.autograd.grad(record(x, mask).sum(), x)[0].tolist() == [2, 0, 2]
    assert cd.autograd.grad(record(x).sum(), x)[0].tolist() == [3, 3, 3]
    out = record(x, mask).sum()
    mask.logical_not_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_composite_may_have_a_variadic_parameter() -> None:
    """The body gets the values as separate arguments, above autograd and below it."""

    def flicker(input: Any, *size: Any) -> Any:
        """Return the expanded input."""
        return input.expand(*size)

    for name in ("above", "below"):
        flicker.__name__ = f"flicker_{name}"
        rule = by(lambda input, size: size)
        record = operator(rule)(declared(flicker, input="Tensor", size="Shape"))
        if name == "below":
            record.vjp(input=lambda g: g.sum(0))
        x = cd.ones(3, requires_grad=True)
        for out in (record(x, 2, 3), record(x, (2, 3)), record(x, size=(2, 3))):
            assert tuple(out.shape) == (2, 3)
            assert cd.autograd.grad(out.sum(), x)[0].tolist() == [2, 2, 2]


def test_a_record_may_be_a_method_only() -> None:
    """``Tensor.sum_to_size`` is such a method, and is not a function of the namespace."""
    assert cd.ones(2, 3).sum_to_size(3).tolist() == [2, 2, 2]
    assert not hasattr(cd, "sum_to_size")


def test_a_correction_is_a_number() -> None:
    """None is 1; a NumPy integer is accepted; a text is refused."""
    x = cd.tensor([1.0, 3.0])
    assert x.var(correction=None).item() == x.var().item() == 2
    assert x.var(correction=np.int64(0)).item() == 1
    assert x.var(correction=0.5).item() == pytest.approx(4 / 3)
    with pytest.raises(TypeError, match="argument 'correction' must be Number, not str"):
        x.var(correction="1")


def test_dims_may_be_none_or_no_dims() -> None:
    """With ``| None`` in the annotation, None means all dims."""
    x = cd.tensor([[True, False], [True, True]])
    assert x.all(None).item() is False
    assert x.all(()).tolist() == [[True, False], [True, True]]
    assert x.all((0, 1)).item() is False
    assert x.all(-1).tolist() == [False, True]
    assert cd.tensor(True).all(0).item() is True
    assert cd.tensor(True).all((-1,)).item() is True
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times in the list of dims"):
        x.all((1, -1))


def test_an_overload_set_is_explained_by_the_member_that_serves_the_call() -> None:
    """This holds also if a record has the name of the set, whether passed by name or as a function."""
    x = cd.ones(2, 3)
    assert explain("softmax", x, 1).operator == "softmax"
    assert explain("softmax", x, 1, dtype=cd.float64).operator == "softmax_in_dtype"
    assert explain(cd.var, x, False).operator == "var_of_all"


def test_factors_before_the_tensors_are_deprecated() -> None:
    """`add_(2, x)` is PyTorch's form of before 1.5: it warns and means the factor."""
    x, y, m = cd.ones(2), cd.full((2,), 3.0), cd.ones(2, 2)
    calls = {
        "add_": (lambda: x.clone().add_(2, y), [7.0, 7.0]),
        "add": (lambda: cd.add(x, 2, y), [7.0, 7.0]),
        "sub_": (lambda: x.clone().sub_(2, y), [-5.0, -5.0]),
        "addcdiv_": (lambda: x.clone().addcdiv_(6, y, y), [7.0, 7.0]),
        "addcmul": (lambda: x.addcmul(2, y, y), [19.0, 19.0]),
        "addmv": (lambda: x.addmv(2, 3, m, y), [20.0, 20.0]),
    }
    for name, (call, expected) in calls.items():
        with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated: pass the number by keyword"):
            assert call().tolist() == expected
    with pytest.raises(TypeError, match=r"add_\(\) takes 2 positional arguments but 3 were given"):
        x.add_(y, y)
    with pytest.raises(TypeError, match=r"addcmul\(\) takes 3 positional arguments but 5 were given"):
        x.addcmul(1, 2, y, y)


def test_in_place_methods_are_functions_of_the_package() -> None:
    """`candelabra.abs_(x)` is `x.abs_()`, and `dir(candelabra)` lists it."""
    x = cd.tensor([-1.0, 4.0])
    assert cd.abs_(x) is x
    assert cd.clamp_(x, max=2).tolist() == [1.0, 2.0]
    assert cd.zero_(x).tolist() == [0.0, 0.0]
    assert {"abs_", "clamp_", "index_put_", "fill_", "zero_"} <= set(dir(cd))
    assert not hasattr(cd, "_abs_")
