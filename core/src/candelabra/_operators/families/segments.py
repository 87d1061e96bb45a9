"""Reductions of segments of a tensor, and a hash of all its bits."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._codegen.arguments import as_dims
from candelabra._dispatch.out import store
from candelabra._operators.families.searching import sorted_place
from candelabra._operators.primitives import comparisons, creation
from candelabra._records.callables import public
from candelabra.dtypes import FLOATING, PYTHON_NAMES, float64, int64, uint64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

INFINITY: Final = float("inf")
REDUCTIONS: Final[dict[str, tuple[str, float]]] = {
    "sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -INFINITY), "min": ("amin", INFINITY),
}  # fmt: skip
"""The scattered reduction behind each, and what it begins with."""


@public(method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive segments along ``axis``: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.

    The segments have the given ``lengths``, or begin and end at ``offsets``; the dims before ``axis`` may have each
    their own. Without elements a segment gives ``initial``, or the reduction's identity (NaN for the mean). Raises
    ``RuntimeError`` where the lengths don't add up to the size along ``axis``, unless ``unsafe``.
    """
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"segment_reduce(): reduce must be one of {', '.join(REDUCTIONS)}, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data.dtype.category != FLOATING:
        raise NotImplementedError(f"\"segment_reduce\" not implemented for '{PYTHON_NAMES[data.dtype.name]}'")
    if lengths is None:
        if offsets is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        lengths = offsets.diff(dim=-1)
    axis = axis + data.ndim if axis < 0 else axis
    if axis != lengths.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if not unsafe and not bool((lengths.sum(-1) == data.shape[axis]).all()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    return _reduced(data, lengths.to(int64), axis, reduce, initial)


def _reduced(data: Tensor, lengths: Tensor, axis: int, reduce: str, initial: float | None) -> Tensor:
    scattered, identity = REDUCTIONS[reduce]
    count, shape = lengths.shape[-1], tuple(data.shape)
    places = creation.arange(0, 1, shape[axis], dtype=int64, device=data.device).expand(shape[: axis + 1])
    segments = sorted_place(lengths.cumsum(-1), places.clone(), True)  # what is in none goes to one more
    along = segments.reshape([*segments.shape, *[1] * (data.ndim - axis - 1)]).expand(shape)
    start = creation.full(
        (*shape[:axis], count + 1, *shape[axis + 1 :]),
        identity if initial is None else initial,
        dtype=data.dtype,
        device=data.device,
    )
    found: Tensor = start.scatter_reduce(axis, along, data, scattered).narrow(axis, 0, count).clone()
    if reduce != "mean":
        return found
    sizes = lengths.reshape([*lengths.shape, *[1] * (data.ndim - axis - 1)])
    mean = found / sizes.clamp(min=1)
    return mean.masked_fill(sizes == 0, float("nan")) if initial is None else mean


@public
def hash_tensor(
    input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Any:
    """The exclusive or, over ``dim`` (all dims when empty), of the bits of all elements, as uint64.

    Floats are taken as float64, integers and bools as int64. ``mode`` 0 is the only one.
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode: {mode}")
    if input.is_complex():
        raise NotImplementedError("hash_tensor is not implemented for complex dtypes")
    x = input.detach()
    bits = x.to(float64).view(int64) if x.is_floating_point() else x.to(int64)
    dims = as_dims(dim, x)
    for d in sorted(range(x.ndim) if dims is None else dims, reverse=True):
        bits = _folded(bits, d)
    if not keepdim:
        bits = bits.reshape([s for i, s in enumerate(bits.shape) if not (dims is None or i in dims)])
    return store("hash_tensor", bits.view(uint64).clone(), out)


def _folded(bits: Tensor, dim: int) -> Tensor:
    """The exclusive or along one dim, which stays with size 1: one half with the other, again and again."""
    size = bits.shape[dim]
    if not size:
        shape = tuple(1 if d == dim else s for d, s in enumerate(bits.shape))
        return creation.full(shape, 0, dtype=int64, device=bits.device)
    while size > 1:
        half, odd = divmod(size, 2)
        folded = comparisons.bitwise_xor(bits.narrow(dim, 0, half), bits.narrow(dim, half, half))
        if odd:
            first = comparisons.bitwise_xor(folded.narrow(dim, 0, 1), bits.narrow(dim, size - 1, 1))
            folded = first if half == 1 else _joined(first, folded.narrow(dim, 1, half - 1), dim)
        bits, size = folded, half
    return bits


def _joined(a: Tensor, b: Tensor, dim: int) -> Tensor:
    from candelabra._operators.shapes.joining import cat

    out: Tensor = cat([a, b], dim)
    return out
