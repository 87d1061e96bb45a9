"""Views in memory of their own: ``view_copy``, ``split_copy`` and their kin, a table over the fronts of the views.

A copy never shares memory with its source. Its derivative is that of the view and of the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._dispatch.out import store
from candelabra._dispatch.promote import title
from candelabra._operators.fronts import arranging, indexing, joining, shaping
from candelabra._operators.fronts.forms import with_out
from candelabra._operators.fronts.registry import front
from candelabra._operators.primitives import strided, views
from candelabra._operators.primitives.creation import clone

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


# -- one tensor -------------------------------------------------------------------------------------------------------
def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    d = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    return indexing.__getitem__(input, (*(slice(None),) * d, slice(start, end, step)))


def _view(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    return shaping.view(input, dtype=dtype) if size is None else shaping.view(input, size)


def _expand(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    return shaping.expand(input, size)


def _permute(input: Tensor, dims: Sequence[int]) -> Tensor:
    return shaping.permute(input, dims)


VIEWS: dict[str, Callable[..., Any]] = {
    "alias": views.alias, "as_strided": arranging.as_strided, "detach": views.detach, "diagonal": shaping.diagonal,
    "expand": _expand, "permute": _permute, "select": shaping.select, "slice": _slice, "squeeze": shaping.squeeze,
    "t": views.t, "transpose": views.transpose, "unfold": strided.unfold, "unsqueeze": shaping.unsqueeze,
    "view": _view, "view_as_complex": strided.view_as_complex, "view_as_real": strided.view_as_real,
}  # fmt: skip
LISTS: dict[str, Callable[..., Any]] = {
    "split": joining.split, "split_with_sizes": joining.split, "unbind": shaping.unbind,
}  # fmt: skip


def _declare(name: str, view: Callable[..., Any]) -> None:
    def copy(input: Tensor, *args: Any, out: Tensor | None = None, **kwargs: Any) -> Tensor:
        made: Tensor = store(f"{name}_copy", clone(view(input, *args, **kwargs)), out)
        return made

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"What ``{name}`` shows, with the same arguments, as a copy in memory of its own; ``out=`` takes it."
    front(method=False)(copy)


for _name, _view_function in VIEWS.items():
    _declare(_name, _view_function)


@front
@with_out
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """:func:`narrow`, in a copy. ``RuntimeError`` where ``dim`` is too large, as in PyTorch."""
    if dim >= input.ndim > 0:
        raise RuntimeError(f"narrow_copy(): Expected dim < {input.ndim}, but got {dim}")
    return clone(shaping.narrow(input, dim, start, length))


# -- several tensors --------------------------------------------------------------------------------------------------
def _declare_list(name: str, split: Callable[..., Any]) -> None:
    def copy(
        input: Tensor, *args: Any, out: Sequence[Tensor] | None = None, **kwargs: Any
    ) -> tuple[Tensor, ...] | None:
        for size in ("split_size", "split_sizes"):
            if size in kwargs:
                kwargs["split_size_or_sections"] = kwargs.pop(size)
        parts = tuple([clone(part) for part in split(input, *args, **kwargs)])
        if out is None:
            return parts
        _fill(name, out, parts)
        return None

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"The parts that ``{name}`` shows, as copies; ``out=`` takes a list of as many tensors."
    front(method=False)(copy)


def _fill(name: str, out: Sequence[Tensor], parts: tuple[Tensor, ...]) -> None:
    if len(out) != len(parts):
        raise RuntimeError(f"{name}_copy_out() expected an out= argument of size {len(parts)}, got size {len(out)}")
    for target, part in zip(out, parts):
        if target.dtype is not part.dtype:
            raise RuntimeError(
                f"Expected out tensor to have dtype {title(part.dtype)}, but got {title(target.dtype)} instead"
            )
    for target, part in zip(out, parts):
        store(f"{name}_copy", part, target)


for _name, _view_function in LISTS.items():
    _declare_list(_name, _view_function)
