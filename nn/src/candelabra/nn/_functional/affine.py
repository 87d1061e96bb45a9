"""Linear and bilinear maps, as in ``torch.nn.functional``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra.dtypes import PYTHON_NAMES
from candelabra.library import store

if TYPE_CHECKING:
    from candelabra import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: input (*, in), weight (out, in) or (in), bias (out) or ()."""
    if weight.dtype is not input.dtype:
        a, b = (PYTHON_NAMES[t.dtype.name].lower() for t in (input, weight))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    made: Tensor = input @ (weight.t() if weight.ndim == 2 else weight)
    stored: Tensor = store("linear", made if bias is None else made + bias, out)
    return stored


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[o] @ input2`` for each o: inputs (*, a) and (*, b), weight (out, a, b), bias (out)."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}"
        )
    if weight.ndim != 3 or weight.shape[1] != input1.shape[-1] or weight.shape[2] != input2.shape[-1]:
        raise RuntimeError(
            f"bilinear(): inputs of size {input1.shape[-1]} and {input2.shape[-1]} do not match weight of size "
            f"{list(weight.shape)}"
        )
    count, width, other = weight.shape
    halfway = input1 @ weight.permute(1, 0, 2).reshape((width, count * other))
    out = (halfway.reshape((*input1.shape[:-1], count, other)) * input2.unsqueeze(-2)).sum(-1, dtype=input1.dtype)
    return out if bias is None else out + bias
