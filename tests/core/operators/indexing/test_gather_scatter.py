"""gather, scatter and related operators: overloads, operands of one dtype, rules that read no values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import OPERATORS, Tensor

INDEX = cd.tensor([0, 2, 2])


# -- scatter ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "keywords", "expected"),
    [
        ((cd.tensor([5.0, 6.0, 7.0]),), {}, [5, 2, 7]),
        ((cd.tensor([5.0, 6.0, 7.0]),), {"reduce": None}, [5, 2, 7]),
        ((cd.tensor([5.0, 6.0, 7.0]),), {"reduce": "add"}, [6, 2, 16]),
        ((cd.tensor([5.0, 6.0, 7.0]),), {"reduce": "multiply"}, [5, 2, 126]),
        ((9,), {}, [9, 2, 9]),
        ((np.float32(9),), {}, [9, 2, 9]),
        ((), {"value": 9.0}, [9, 2, 9]),
        ((), {"src": cd.tensor([5.0, 6.0, 7.0])}, [5, 2, 7]),
        ((9,), {"reduce": "add"}, [10, 2, 21]),
        ((), {"value": 2, "reduce": "multiply"}, [2, 2, 12]),
        ((2,), {"reduce": None}, [2, 2, 2]),
    ],
)
def test_scatter_takes_a_tensor_or_a_number_and_combines_on_request(
    arguments: tuple[Any, ...], keywords: dict[str, Any], expected: list[float]
) -> None:
    """The function, the method and the in-place form agree; the in-place form writes through a view."""
    x = cd.tensor([1.0, 2.0, 3.0])
    assert cd.scatter(x, 0, INDEX, *arguments, **keywords).tolist() == expected
    assert x.scatter(0, INDEX, *arguments, **keywords).tolist() == expected
    base = cd.zeros(2, 3)
    view = base[1]
    view.copy_(x)
    assert view.scatter_(0, INDEX, *arguments, **keywords) is view
    assert base.tolist() == [[0, 0, 0], expected]
    assert x.tolist() == [1, 2, 3]


def test_a_number_in_place_leaves_no_gradient_where_it_is_written() -> None:
    """The gradient is the same as that of the out-of-place form."""
    x = cd.ones(3, requires_grad=True)
    (x * 2).scatter_(0, cd.tensor([1]), 5.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 0, 2]


# -- operands of one dtype --------------------------------------------------------------------------------------------
DOUBLES = cd.ones(3, dtype=cd.float64)
SAME_DTYPE: dict[str, Callable[..., Any]] = {
    "scatter": lambda x, form: getattr(x, f"scatter{form}")(0, INDEX, DOUBLES),
    "scatter_add": lambda x, form: getattr(x, f"scatter_add{form}")(0, INDEX, DOUBLES),
    "scatter_reduce": lambda x, form: getattr(x, f"scatter_reduce{form}")(0, INDEX, DOUBLES, "sum"),
    "index_add": lambda x, form: getattr(x, f"index_add{form}")(0, INDEX, DOUBLES),
    "index_copy": lambda x, form: getattr(x, f"index_copy{form}")(0, INDEX, DOUBLES),
    "index_put": lambda x, form: getattr(x, f"index_put{form}")((INDEX,), DOUBLES),
    "index_reduce": lambda x, form: getattr(x, f"index_reduce{form}")(0, INDEX, DOUBLES, "prod"),
    "masked_scatter": lambda x, form: getattr(x, f"masked_scatter{form}")(x > 0, DOUBLES),
    "put": lambda x, form: getattr(x, f"put{form}")(INDEX, DOUBLES),
}


@pytest.mark.parametrize("form", ["", "_"])
@pytest.mark.parametrize("name", SAME_DTYPE)
def test_operands_of_two_dtypes_are_refused_and_nothing_is_written(name: str, form: str) -> None:
    """They are not converted: the error names the operator, the operands and their dtypes."""
    x = cd.tensor([1.0, 2.0, 3.0])
    words = rf"{name}\(\): expected input and (src|source|values) to have the same dtype, but got Float and Double"
    with pytest.raises(RuntimeError, match=words):
        SAME_DTYPE[name](x, form)
    assert x.tolist() == [1, 2, 3]


# -- rules and values -------------------------------------------------------------------------------------------------
OUTSIDE = cd.tensor([7])
RULES: dict[str, tuple[Any, ...]] = {
    "gather": (cd.ones(3), 0, OUTSIDE),
    "scatter_src": (cd.ones(3), 0, OUTSIDE, cd.ones(1)),
    "scatter_add": (cd.ones(3), 0, OUTSIDE, cd.ones(1)),
    "scatter_extreme": (cd.ones(3), 0, OUTSIDE, cd.ones(1), "prod", True),
    "index_select": (cd.ones(3), 0, OUTSIDE),
    "index_add": (cd.ones(3), 0, OUTSIDE, cd.ones(1)),
    "index": (cd.ones(3), (OUTSIDE,)),
    "index_put": (cd.ones(3), (OUTSIDE,), cd.ones(1), False),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_gives_the_shape_whatever_the_indices_are_and_the_check_refuses_them(name: str) -> None:
    """Rules run for tensors without data; bounds are checked after a kernel has failed."""
    record, arguments = OPERATORS[name], RULES[name]
    assert tuple(record.rule(record, arguments)) in ((3,), (1,))
    assert record.check is not None
    with pytest.raises((RuntimeError, IndexError), match="index 7 is out of bounds for dimension 0 with size 3"):
        record.check(*arguments)


def without_data(*shape: int, dtype: Any = None) -> Tensor:
    """Return a tensor without readable elements."""
    made: Tensor = cd.empty(shape, dtype=dtype or cd.float32, device="meta")
    return made


def test_operators_that_need_no_values_work_without_data() -> None:
    """Also operators whose kernels check index values, and those with an explicit size work."""
    x, index = without_data(3, 4), without_data(2, 4, dtype=cd.int64)
    assert cd.take_along_dim(x, index, 0).shape == (2, 4)
    assert cd.take(x, index).shape == (2, 4)
    assert x[index].shape == (2, 4, 4)
    assert cd.isin(x, without_data(50)).shape == (3, 4)
    assert cd.combinations(without_data(5), 3).shape == (10, 3)
    assert cd.nonzero_static(x, size=7).shape == (7, 2)
    assert cd.searchsorted(without_data(9), x, out_int32=True).dtype is cd.int32
    assert x.put(index, without_data(8)).shape == (3, 4)
    assert x.index_fill(0, index[0], 1.0).shape == (3, 4)
    assert x.index_reduce(0, index[:, 0], without_data(2, 4), "mean").shape == (3, 4)
    assert x.select_scatter(without_data(4, dtype=cd.int64), 0, 1).dtype is cd.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
        lambda x: cd.unique(x),
        lambda x: x.index_put((x > 0,), without_data()),
    ],
)
def test_results_whose_size_depends_on_values_need_data(call: Callable[[Tensor], Any]) -> None:
    """The error names the operator."""
    with pytest.raises(NotImplementedError, match="the shape of the result depends on the values"):
        call(without_data(3, 4))


def test_masks_stand_for_the_indices_of_their_true_elements() -> None:
    """A mask may be combined with index tensors and None in index_put."""
    mask = cd.tensor([[True, False], [False, True]])
    x = cd.zeros(2, 2, 3)
    assert x.index_put((mask, cd.tensor(1)), cd.ones(2)).tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
    assert x.index_put((None, cd.tensor([True, False])), cd.tensor(1.0)).sum().item() == 6
    with pytest.raises(IndexError, match=r"too many indices for tensor of dimension 3 \(got 4\)"):
        x.index_put((mask, mask), cd.tensor(1.0))
