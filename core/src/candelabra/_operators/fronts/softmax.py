"""``softmax`` as PyTorch overloads it: an optional dim and dtype."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.primitives import softmax as records
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _implicit_dim(rank: int) -> int:
    return 0 if rank in (0, 1, 3) else 1


@public(out=True)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``; ``dtype`` casts the input first."""
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = records.softmax.function(input, _implicit_dim(input.ndim) if dim is None else dim)
    return out


@public(out=True)
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """``log(softmax(input))`` along ``dim``, without overflow; ``dtype`` casts the input first."""
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = records.log_softmax.function(input, _implicit_dim(input.ndim) if dim is None else dim)
    return out
