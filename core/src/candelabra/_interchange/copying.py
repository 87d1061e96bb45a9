"""Deep and shallow copies of tensors, and pickles.

The copies of tensors that share memory share memory too: it is copied once per ``memo``, and views are created again
from the copy. A pickle contains bytes, dtype, shape and device, and calls only :func:`rebuilt`.
"""

from __future__ import annotations

import copy

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import chain_of
from candelabra._interchange.host import tensor_from_bytes, tensor_to_bytes
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, mode
from candelabra._tensor import Tensor, wrap

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def deep_copy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """Implement ``Tensor.__deepcopy__``. Raise ``RuntimeError`` for a tensor that is not a leaf, as PyTorch does."""
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because a computed tensor is stored in it: store "
            "tensor.detach() instead."
        )
    if id(tensor) in memo:
        return memo[id(tensor)]  # type: ignore[no-any-return]
    out = _copied_memory(tensor, memo)
    if tensor._keys & VIEW:
        with mode(include=NO_GRAD):
            for op, arguments in chain_of(tensor):
                out = op(out, *arguments)
    elif tensor.requires_grad or type(tensor) is not type(out):
        out = _alias(out)
    out = _dressed(out, tensor)
    memo[id(tensor)] = out
    out.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    if tensor.grad is not None:
        out.grad = copy.deepcopy(tensor.grad, memo)
    return out


def _copied_memory(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """Return a copy of the base's memory, once per memo. The version cell, which views share, identifies the memory."""
    base = tensor._base if tensor._keys & VIEW else tensor
    found = memo.get(id(base._counter))
    if found is None:
        with mode(include=NO_GRAD):
            found = wrap(base._payload, base._keys & ~(AUTOGRAD | VIEW)).clone()
        memo[id(base._counter)] = found
        memo.setdefault(id(memo), []).append(base)  # an id is valid only while its object is alive
    return found


def _alias(out: Tensor) -> Tensor:
    """Return a second tensor on the same payload and version, which may require grad without affecting the first."""
    made = wrap(out._payload, out._keys)
    made._counter = out._counter
    return made


def _dressed(out: Tensor, like: Tensor) -> Tensor:
    if type(like) is not type(out):
        out = out.as_subclass(type(like))
    if like.requires_grad:
        out.requires_grad_()
    return out


def shallow_copy(tensor: Tensor) -> Tensor:
    """Return a second tensor on the same memory, a leaf with the same attributes."""
    out = _dressed(tensor.detach(), tensor)
    out.__dict__.update(tensor.__dict__)
    return out


def reduced(tensor: Tensor) -> tuple[Any, ...]:
    """Return the content of a pickle: only the tensor's own elements, so that a small view is a small pickle."""
    arguments = (
        type(tensor), tensor_to_bytes(tensor), tensor.dtype.name, tuple(tensor._payload.shape), str(tensor.device),
        tensor.requires_grad, dict(tensor.__dict__),
    )  # fmt: skip
    return rebuilt, arguments


def rebuilt(
    cls: type,
    data: bytes,
    dtype: str,
    shape: tuple[int, ...],
    device: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """Create a tensor from the content that :func:`reduced` returned, on its original device."""
    if not issubclass(cls, Tensor):
        raise TypeError(f"a pickled tensor names the class {cls.__name__}, which is no Tensor")
    out = tensor_from_bytes(data, dtype, shape, device)
    if cls is not Tensor:
        out = out.as_subclass(cls)
    if requires_grad:
        out.requires_grad_()
    out.__dict__.update(attributes)
    return out
