"""Views in memory of their own: ``view_copy``, ``split_copy`` and their kin.

A copy never shares memory with its source. Its derivative is that of the view and of the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._dispatch.out import store
from candelabra._dispatch.promote import title
from candelabra._operators.fronts import arranging, indexing, joining, shaping
from candelabra._operators.primitives import strided, views
from candelabra._operators.primitives.creation import clone
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


# -- one tensor -------------------------------------------------------------------------------------------------------
@public(method=False, out=True)
def alias_copy(input: Tensor) -> Tensor:
    """What ``alias`` shows, as a copy in memory of its own."""
    return clone(views.alias(input))


@public(method=False, out=True)
def as_strided_copy(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """What ``as_strided`` shows, as a copy in memory of its own."""
    return clone(arranging.as_strided(input, size, stride, storage_offset))


@public(method=False, out=True)
def detach_copy(input: Tensor) -> Tensor:
    """What ``detach`` shows, as a copy in memory of its own."""
    return clone(views.detach(input))


@public(method=False, out=True)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """What ``diagonal`` shows, as a copy in memory of its own."""
    return clone(shaping.diagonal(input, offset, dim1, dim2))


@public(method=False, out=True)
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """What ``expand`` shows, as a copy in memory of its own."""
    return clone(shaping.expand(input, size))


@public(method=False, out=True)
def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """What ``permute`` shows, as a copy in memory of its own."""
    return clone(shaping.permute(input, dims))


@public(method=False, out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """What ``select`` shows, as a copy in memory of its own."""
    return clone(shaping.select(input, dim, index))


@public(method=False, out=True)
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """What ``slice`` shows, as a copy in memory of its own."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    d = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    return clone(indexing.__getitem__(input, (*(slice(None),) * d, slice(start, end, step))))


@public(method=False, out=True)
def squeeze_copy(input: Tensor, dim: Any = None) -> Tensor:
    """What ``squeeze`` shows, as a copy in memory of its own."""
    return clone(shaping.squeeze(input, dim))


@public(method=False, out=True)
def t_copy(input: Tensor) -> Tensor:
    """What ``t`` shows, as a copy in memory of its own."""
    return clone(views.t(input))


@public(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """What ``transpose`` shows, as a copy in memory of its own."""
    return clone(views.transpose(input, dim0, dim1))


@public(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """What ``unfold`` shows, as a copy in memory of its own."""
    return clone(strided.unfold(input, dimension, size, step))


@public(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """What ``unsqueeze`` shows, as a copy in memory of its own."""
    return clone(shaping.unsqueeze(input, dim))


@public(method=False, out=True)
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """What ``view`` shows, as a copy in memory of its own."""
    return clone(shaping.view(input, dtype=dtype) if size is None else shaping.view(input, size))


@public(method=False, out=True)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """What ``view_as_complex`` shows, as a copy in memory of its own."""
    return clone(strided.view_as_complex(input))


@public(method=False, out=True)
def view_as_real_copy(input: Tensor) -> Tensor:
    """What ``view_as_real`` shows, as a copy in memory of its own."""
    return clone(strided.view_as_real(input))


@public(out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """:func:`narrow`, in a copy. ``RuntimeError`` where ``dim`` is too large, as in PyTorch."""
    if dim >= input.ndim > 0:
        raise RuntimeError(f"narrow_copy(): Expected dim < {input.ndim}, but got {dim}")
    return clone(shaping.narrow(input, dim, start, length))


# -- several tensors --------------------------------------------------------------------------------------------------
def _copied(name: str, views: Sequence[Tensor], out: Sequence[Tensor] | None) -> tuple[Tensor, ...] | None:
    copies = tuple([clone(view) for view in views])
    if out is None:
        return copies
    _fill(name, out, copies)
    return None


@public(method=False)
def split_copy(
    input: Tensor, split_size: Any, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """The tensors that ``split`` gives, as copies; ``out=`` takes a list of as many tensors."""
    return _copied("split", joining.split(input, split_size, dim), out)


@public(method=False)
def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """The tensors that ``split_with_sizes`` gives, as copies; ``out=`` takes a list of as many tensors."""
    return _copied("split_with_sizes", joining.split(input, split_sizes, dim), out)


@public(method=False)
def unbind_copy(input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...] | None:
    """The tensors that ``unbind`` gives, as copies; ``out=`` takes a list of as many tensors."""
    return _copied("unbind", shaping.unbind(input, dim), out)


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
