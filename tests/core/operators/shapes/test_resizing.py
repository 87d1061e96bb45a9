"""In-place changes of the shape: sizes, strides, history and versions."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest


def ramp(*shape: int) -> Any:
    """Return 0, 1, 2, … in a shape."""
    count = 1
    for size in shape:
        count *= size
    return cd.arange(float(count)).reshape(shape)


CASES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "t_": ((), lambda x: x.t()),
    "transpose_": ((0, 1), lambda x: x.transpose(0, 1)),
    "swapaxes_": ((0, -1), lambda x: x.swapaxes(0, -1)),
    "swapdims_": ((0, 1), lambda x: x.swapdims(0, 1)),
    "unsqueeze_": ((-1,), lambda x: x.unsqueeze(-1)),
    "squeeze_": ((), lambda x: x.squeeze()),
    "as_strided_": (((2, 2), (1, 2)), lambda x: x.as_strided((2, 2), (1, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tensor_becomes_what_its_view_shows(name: str) -> None:
    """The tensor stays the same object with the same memory, and its version is incremented."""
    arguments, view = CASES[name]
    x = ramp(2, 3).clone()
    wanted, place, version = view(x).clone(), x.data_ptr(), x._version
    assert getattr(x, name)(*arguments) is x
    assert x.shape == wanted.shape
    assert x.tolist() == wanted.tolist()
    assert x.data_ptr() == place
    assert x._version == version + 1


@pytest.mark.parametrize("name", CASES)
def test_the_step_is_part_of_the_history(name: str) -> None:
    """The gradient is that of the view."""
    arguments, view = CASES[name]
    x, y = ramp(2, 3).requires_grad_(), ramp(2, 3).requires_grad_()
    changed = x * 2
    getattr(changed, name)(*arguments)
    seen = view(y * 2)
    weights = ramp(*seen.shape)
    (changed * weights).sum().backward()
    (seen * weights).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_a_view_changes_its_shape_and_stays_one() -> None:
    """A write to it reaches the base, and so does its gradient."""
    x = ramp(2, 3).requires_grad_()
    base = x * 1
    row = base[0]
    row.unsqueeze_(0)
    assert row._is_view()
    row.mul_(5)
    assert base.tolist() == [[0, 5, 10], [3, 4, 5]]
    base.sum().backward()
    assert x.grad.tolist() == [[5, 5, 5], [1, 1, 1]]


def test_a_leaf_changes_its_shape_only_where_nothing_is_recorded() -> None:
    """It stays a leaf, whose gradient has the new shape."""
    w = ramp(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        w.t_()
    with cd.no_grad():
        w.t_()
    assert w.is_leaf
    (w * ramp(3, 2)).sum().backward()
    assert w.grad.tolist() == ramp(3, 2).tolist()


def test_what_was_saved_notices() -> None:
    """A product saves its factor; a change of the factor's shape is an error in backward."""
    x, w = ramp(2, 3), ramp(2, 3).requires_grad_()
    y = x * w
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_history_follows_a_change_without_recording() -> None:
    """A non-leaf tensor keeps a node with its shape, whatever the mode."""
    x = ramp(2, 3).requires_grad_()
    y = x * 2
    with cd.no_grad():
        y.t_()
    (y * ramp(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


# -- resize_ ----------------------------------------------------------------------------------------------------------
def test_smaller_sizes_show_less_of_the_memory() -> None:
    """The elements keep their memory order."""
    x = ramp(6).clone()
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_as_(cd.empty(3)).tolist() == [0, 1, 2]


def test_larger_sizes_use_new_memory_that_starts_with_the_old_elements() -> None:
    """New elements are unspecified; a transposed tensor keeps its memory, not its dims' order."""
    x = ramp(2, 2).clone()
    x.resize_((3, 3))
    assert x.shape == (3, 3)
    assert x.flatten()[:4].tolist() == [0, 1, 2, 3]
    assert x.is_contiguous()
    y = ramp(2, 3).t()
    y = y.clone().t_()
    assert y.resize_(3, 3).flatten()[:6].tolist() == [0, 3, 1, 4, 2, 5]
    z = cd.ones(2).resize_(2, 2, 3, 4, memory_format=cd.channels_last)
    assert z.stride() == (24, 1, 8, 2)


def test_tensors_that_cannot_be_resized_say_why() -> None:
    """Tensors that require grad, views, and negative sizes are errors."""
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        cd.ones(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match=r"a view of 2 elements cannot grow to \[9\] beyond the memory of its base"):
        ramp(2, 2).clone()[0].resize_(9)
    with pytest.raises(RuntimeError, match="negative dimension"):
        cd.ones(2).resize_(-1)
    assert ramp(2, 2).clone()[1].resize_(1).tolist() == [2]


# -- set_ -------------------------------------------------------------------------------------------------------------
def test_a_tensor_takes_the_memory_of_another() -> None:
    """The sizes and strides are those of the other tensor, or passed explicitly."""
    source, x = ramp(6).clone(), cd.ones(2)
    assert x.set_(source) is x
    assert x.is_set_to(source)
    assert not x.is_set_to(source[1:])
    source[0] = 9
    assert x[0].item() == 9
    assert x.set_(source, 1, (2, 2), (2, 1)).tolist() == [[1, 2], [3, 4]]
    assert x.set_(source, 4, (2,)).tolist() == [4, 5]
    assert x.set_().shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((cd.ones(2, dtype=cd.float64),), RuntimeError, "expected a source of dtype candelabra.float32"),
        (([1.0],), TypeError, r"argument 'source' \(position 1\) must be Tensor, not list"),
        ((cd.ones(2), 1), TypeError, "a storage_offset needs a size"),
    ],
)
def test_memory_that_does_not_fit_is_refused(arguments: Any, error: Any, match: str) -> None:
    """Another dtype, a non-tensor, and an offset without sizes are errors."""
    with pytest.raises(error, match=match):
        cd.ones(2).set_(*arguments)


def test_memory_of_another_device_is_refused(lantern: Any) -> None:
    """A tensor cannot change its device."""
    with pytest.raises(RuntimeError, match=r"set_\(\): expected a source on cpu, but got one on lantern:0"):
        cd.ones(2).set_(cd.ones(2, device="lantern"))


@pytest.mark.usefixtures("lantern")
def test_memory_without_an_address_is_identified_by_its_base() -> None:
    """Views of one tensor are compared by sizes, strides and offset; other memory is never equal."""
    source = cd.arange(6.0, device="lantern")
    x = cd.ones(2, device="lantern").set_(source)
    assert x.is_set_to(source)
    assert source[1:3].is_set_to(source[1:3])
    assert not source[1:3].is_set_to(source[2:4])
    assert not x.is_set_to(cd.arange(6.0, device="lantern"))


def test_the_order_of_dims_in_memory() -> None:
    """The outermost dim is first; an ambiguous order is an error on request."""
    assert ramp(2, 3, 4).dim_order() == (0, 1, 2)
    assert ramp(2, 3, 4).transpose(0, 2).dim_order() == (2, 1, 0)
    assert cd.empty(2, 3, 4, 5, memory_format=cd.channels_last).dim_order(ambiguity_check=True) == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        cd.ones(2, 1).expand(2, 3).t().unsqueeze(0).expand(2, 3, 2).dim_order(ambiguity_check=True)


def test_views_from_before_a_change_of_shape() -> None:
    """They keep their content, unless their history requires a base whose shape has changed."""
    x = ramp(2, 3).clone()
    column = x[:, 2]
    x.t_()
    assert (column + 1).tolist() == [3, 6]
    x.mul_(2)
    assert column.tolist() == [4, 10]
    base = ramp(2, 3).requires_grad_() * 1
    row = base[0]
    base.t_()
    with pytest.raises(RuntimeError, match=r"a view of shape \[3\] cannot be used any more: its base was given"):
        row.sum()
