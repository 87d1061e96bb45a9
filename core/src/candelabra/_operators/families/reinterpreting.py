"""The same bytes as another dtype."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.promote import title
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor


@by
def _reinterpreted(input: Tensor, dtype: Any) -> tuple[int, ...]:
    shape = shape_of(input)
    old, new = input.dtype.itemsize, dtype.itemsize
    if old == new:
        return shape
    what = f"to view {title(input.dtype)} as {title(dtype)} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    strides, offset = input._layout()
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {strides[-1]}")
    ratio = new // old
    if ratio:
        if shape[-1] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {shape[-1]}")
        if offset % ratio:
            raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {what}, but got {offset}")
        for d, stride in enumerate(strides[:-1]):
            if stride % ratio:
                raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} {what}, but got {stride}")
    return (*shape[:-1], shape[-1] * old // new)


@operator(_reinterpreted, promote=unpromoted, view=True, method=False, public=False)
def view_dtype(input: Tensor, *, dtype: DType) -> Tensor:
    """The bytes of ``input`` as another dtype: a view. The last dim shrinks or grows where the widths differ.

    Raises ``RuntimeError`` where it does not divide, or the steps of the other dims do not.
    """
    ...


view_dtype.no_gradient("bytes are read as other numbers").scattered(
    lambda base, source, dtype: view_dtype(source.contiguous(), dtype=base.dtype)
)
