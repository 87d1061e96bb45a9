"""Copies of views, bytes viewed as another dtype, memory formats."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


CASES: dict[str, tuple[Any, ...]] = {
    "alias": (), "as_strided": ((2, 2), (1, 2), 1), "detach": (), "diagonal": (1,), "expand": ((2, 2, 3),),
    "permute": ((1, 0),), "select": (1, 2), "squeeze": (), "t": (), "transpose": (0, 1), "unfold": (1, 2, 1),
    "unsqueeze": (1,), "view": ((3, 2),),
}  # fmt: skip
VIEWS: dict[str, Any] = {
    "alias": lambda x: x, "as_strided": cd.as_strided, "detach": lambda x: x, "expand": lambda x, size: x.expand(size),
    "unfold": lambda x, *a: x.unfold(*a), "view": lambda x, size: x.view(size),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_copy_shows_what_the_view_shows(name: str) -> None:
    """In memory of its own; ``out=`` takes it; the gradient is the view's."""
    x, copy, arguments = ramp(2, 3), getattr(cd, f"{name}_copy"), CASES[name]
    wanted = VIEWS.get(name, getattr(cd, name, None))(x, *arguments)
    made = copy(x, *arguments)
    assert made.tolist() == wanted.tolist()
    assert made.shape == wanted.shape
    assert not made._is_view()
    made.zero_()
    assert x.sum().item() == 15
    out = cd.empty(0)
    assert copy(x, *arguments, out=out) is out
    assert out.tolist() == wanted.tolist()
    if name != "detach":
        leaf = x.clone().requires_grad_()
        copy(leaf, *arguments).sum().backward()
        other = x.clone().requires_grad_()
        VIEWS.get(name, getattr(cd, name, None))(other, *arguments).sum().backward()
        assert leaf.grad.tolist() == other.grad.tolist()


def test_slices_complex_parts_and_dtypes_are_copied_too() -> None:
    """``slice_copy``, ``view_as_real_copy`` and its inverse, ``view_copy`` to a dtype."""
    x = ramp(4, 2)
    assert cd.slice_copy(x, 0, 1, None, 2).tolist() == [[2, 3], [6, 7]]
    assert cd.slice_copy(x, 1, -1).tolist() == [[1], [3], [5], [7]]
    z = cd.tensor([1 + 2j])
    assert cd.view_as_real_copy(z).tolist() == [[1, 2]]
    assert cd.view_as_complex_copy(x).tolist() == [1j, 2 + 3j, 4 + 5j, 6 + 7j]
    assert cd.view_copy(cd.tensor([1.0]), dtype=cd.int32).tolist() == [0x3F800000]
    with pytest.raises(RuntimeError, match="slice step must be positive"):
        cd.slice_copy(x, 0, 0, 1, 0)
    with pytest.raises(RuntimeError, match=r"slice\(\) cannot be applied to a 0-dim tensor"):
        cd.slice_copy(cd.tensor(1.0))


@pytest.mark.parametrize(
    ("copy", "arguments"),
    [(cd.split_copy, (2,)), (cd.split_with_sizes_copy, ([2, 2, 1],)), (cd.unbind_copy, ())],
)
def test_lists_of_parts_are_copied(copy: Any, arguments: Any) -> None:
    """A tuple of tensors, or, with a list of as many in ``out=``, nothing."""
    x = ramp(5, 2)
    parts = copy(x, *arguments)
    assert cd.cat([p.reshape(-1, 2) for p in parts]).tolist() == x.tolist()
    assert not any(p._is_view() for p in parts)
    out = [cd.empty(0) for _ in parts]
    assert copy(x, *arguments, out=out) is None
    assert [o.tolist() for o in out] == [p.tolist() for p in parts]


def test_a_narrow_copy_of_a_dim_that_is_not_there_is_refused() -> None:
    """By another class of error than ``narrow``: PyTorch's habit."""
    assert cd.narrow_copy(ramp(3), -1, 1, 2).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"narrow_copy\(\): Expected dim < 1, but got 3"):
        cd.narrow_copy(ramp(3), 3, 0, 1)


def test_lists_that_do_not_fit_are_refused() -> None:
    """As many as there are parts, of the same dtype."""
    with pytest.raises(RuntimeError, match=r"expected an out= argument of size 2, got size 1"):
        cd.unbind_copy(cd.ones(2), out=[cd.empty(0)])
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype Float, but got Int instead"):
        cd.split_copy(cd.ones(2), split_size=1, out=[cd.empty(0), cd.empty(0, dtype=cd.int32)])


# -- bytes as another dtype -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("old", ["float32", "int16", "uint8", "complex64", "float64", "bfloat16"])
@pytest.mark.parametrize("new", ["float64", "int32", "int8", "complex64", "bfloat16", "bool"])
def test_the_same_bytes_in_any_dtype(old: str, new: str) -> None:
    """The last dim changes with the width, and the view shares memory."""
    x = cd.zeros(2, 16, dtype=getattr(cd, old))
    seen = x.view(getattr(cd, new))
    assert seen.dtype is getattr(cd, new)
    assert seen.shape == (2, 16 * x.itemsize // seen.itemsize)
    assert seen.data_ptr() == x.data_ptr()
    x.fill_(1)
    assert seen.view(x.dtype).tolist() == x.tolist()


def test_floats_by_their_bits() -> None:
    """0-d tensors of equal width too; the view carries no gradient; writes reach the source."""
    assert cd.tensor(1.0).view(cd.int32).item() == 0x3F800000
    x = cd.ones(4, requires_grad=True)
    assert not x.view(cd.int32).requires_grad
    y = cd.ones(2)
    y.view(cd.int32).zero_()
    assert y.tolist() == [0, 0]
    assert y._version[0] > 0
    assert y.view(size=(2, 1)).shape == (2, 1)
    assert x.view(cd.float32).requires_grad


@pytest.mark.parametrize(
    ("make", "dtype", "match"),
    [
        (lambda: cd.ones(2, 3), cd.float64, r"self.size\(-1\) must be divisible by 2 to view Float as Double"),
        (lambda: ramp(2, 3).t(), cd.int16, r"self.stride\(-1\) must be 1 to view Float as Short .* but got 3"),
        (lambda: cd.tensor(1.0), cd.float64, r"self.dim\(\) cannot be 0 to view Float as Double"),
        (lambda: ramp(2, 3)[:, :2], cd.float64, r"self.stride\(0\) must be divisible by 2 .* but got 3"),
        (lambda: ramp(3, 4)[1:, 1:3], cd.float64, r"self.storage_offset\(\) must be divisible by 2 .* but got 5"),
    ],
)
def test_bytes_that_do_not_divide_are_refused(make: Any, dtype: Any, match: str) -> None:
    """The error names the size, the step or the start."""
    with pytest.raises(RuntimeError, match=match):
        make().view(dtype)


# -- memory formats ---------------------------------------------------------------------------------------------------
def test_channels_may_lie_last() -> None:
    """``contiguous``, ``clone``, ``to`` and the factories keep to a memory format; values don't change."""
    x, last = ramp(2, 3, 4, 5), cd.channels_last
    for y in (x.contiguous(memory_format=last), x.clone(memory_format=last), x.to(memory_format=last)):
        assert y.stride() == (60, 1, 15, 3)
        assert y.is_contiguous(memory_format=last)
        assert not y.is_contiguous()
        assert (y == x).all()
        assert y.contiguous(memory_format=last) is y
        assert y.contiguous().stride() == x.stride()
    assert cd.empty(2, 3, 4, 5, memory_format=last).stride() == (60, 1, 15, 3)
    assert cd.zeros_like(x, memory_format=cd.preserve_format).stride() == x.stride()
    assert cd.ones(2, 2, 3, 4, 5).contiguous(cd.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    assert cd.rand(1, 2, 3, 4, memory_format=last, requires_grad=True).is_leaf
    for d in (x, x.double()):  # where nothing but the order changes, too
        assert d.double(memory_format=last).stride() == (60, 1, 15, 3)
    assert repr(last) == "candelabra.channels_last"
    assert x.layout is cd.strided


def test_formats_that_do_not_apply_are_refused() -> None:
    """Channels last needs four dims, ``contiguous`` a format to be in, a factory a layout that there is."""
    with pytest.raises(RuntimeError, match=r"required rank 4 tensor to use candelabra\.channels_last format"):
        cd.ones(2).contiguous(memory_format=cd.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        cd.ones(2).contiguous(memory_format=cd.preserve_format)
    with pytest.raises(TypeError, match=r"memory_format must be a candelabra\.memory_format, not int"):
        cd.ones(2).clone(memory_format=3)
    with pytest.raises(TypeError, match=r"zeros\(\): argument 'layout' must be candelabra.layout, not str"):
        cd.zeros(2, layout="sparse")
    with pytest.raises(RuntimeError, match=r"layout candelabra.channels_last is not supported"):
        cd.zeros(2, layout=cd.channels_last)
