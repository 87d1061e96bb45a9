"""Copies of views."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
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
    """The copy has its own memory; ``out=`` is supported; the gradient is the view's."""
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
    """``slice_copy``, ``view_as_real_copy`` and its inverse, and ``view_copy`` to a dtype are correct."""
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
    """The result is a tuple of tensors, or those in ``out=`` if their number matches."""
    x = ramp(5, 2)
    parts = copy(x, *arguments)
    assert cd.cat([p.reshape(-1, 2) for p in parts]).tolist() == x.tolist()
    assert not any(p._is_view() for p in parts)
    out = [cd.empty(0) for _ in parts]
    assert all(made is given for made, given in zip(copy(x, *arguments, out=out), out, strict=True))
    assert [o.tolist() for o in out] == [p.tolist() for p in parts]


def test_a_narrow_copy_takes_dims_from_either_end() -> None:
    """A dim that does not exist is refused as in ``narrow``."""
    assert cd.narrow_copy(ramp(3), -1, 1, 2).tolist() == [1, 2]
    with pytest.raises(IndexError, match=r"Dimension out of range .* but got 3"):
        cd.narrow_copy(ramp(3), 3, 0, 1)


def test_lists_that_do_not_fit_are_refused() -> None:
    """The number and the dtypes must match; nothing is written before the check."""
    first = cd.empty(0)
    with pytest.raises(TypeError, match=r"unbind_copy\(\): argument 'out' must be a tuple of 2 Tensors"):
        cd.unbind_copy(cd.ones(2), out=[first])
    with pytest.raises(
        RuntimeError, match=r"split_copy\(\): Expected out tensor to have dtype candelabra\.float32, but "
    ):
        cd.split_copy(cd.ones(2), split_size=1, out=[first, cd.empty(0, dtype=cd.int32)])
    assert first.shape == (0,)
