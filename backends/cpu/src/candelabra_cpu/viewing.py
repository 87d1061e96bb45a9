"""Views by NumPy's own methods, where those are faster than re-striding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided


def basic_index(x: Any, index: tuple[Any, ...]) -> Any:
    """``x[index]``, 0-d results included."""
    return x[*index, ...]


def transpose(x: Any, dim0: int, dim1: int) -> Any:
    """Two axes swapped."""
    return x.swapaxes(dim0, dim1) if x.ndim else x.view()


def t(x: Any) -> Any:
    """The transposed matrix."""
    if x.ndim > 2:
        raise ValueError("more than two dims")
    return x.T


def permute(x: Any, dims: tuple[int, ...]) -> Any:
    """The axes in another order."""
    return x.transpose(dims)


def expand(x: Any, size: tuple[int, ...]) -> Any:
    """Axes of size 1 repeated by a step of 0."""
    if not x.ndim:  # what the gradient of every full sum does
        return np.ndarray(size, x.dtype, x, 0, (0,) * len(size))
    lead = len(size) - x.ndim
    if lead < 0:
        raise ValueError("fewer sizes than dims")
    steps = [0] * lead
    for i in range(lead - 1, -1, -1):  # a new axis of size 1 steps over what comes after it, as PyTorch's does
        if size[i] == 1:
            steps[i] = size[i + 1] * (steps[i + 1] if i + 1 < lead else x.strides[0])
    for have, want, step in zip(x.shape, size[lead:], x.strides, strict=True):
        if have != want and have != 1:
            raise ValueError("only sizes of 1 expand")
        steps.append(step if have == want else 0)
    try:
        return np.ndarray(size, x.dtype, x, 0, steps)  # ten times faster than broadcast_to
    except ValueError:  # not in C order
        return as_strided(x, size, steps)


def view(x: Any, size: tuple[int, ...]) -> Any:
    """Another shape, never by a copy."""
    return x.reshape(size, copy=False)


def alias(x: Any) -> Any:
    """The same memory as a new array."""
    return x.view()


def squeeze(x: Any, dims: tuple[int, ...]) -> Any:
    """Axes of size 1 dropped."""
    return x.squeeze(dims)


def unsqueeze(x: Any, dim: int) -> Any:
    """An axis of size 1 put in. Its step is PyTorch's; NumPy's newaxis has a step of 0, that of a repeated axis."""
    shape, steps = x.shape, x.strides
    step = shape[dim] * steps[dim] if dim < len(shape) else x.itemsize
    shape, steps = (*shape[:dim], 1, *shape[dim:]), (*steps[:dim], step, *steps[dim:])
    try:
        return np.ndarray(shape, x.dtype, x, 0, steps)
    except ValueError:  # not in C order
        return as_strided(x, shape, steps)


def view_as_real(x: Any) -> Any:
    """Pairs (real, imaginary) along a last axis."""
    return x[..., None].view(x.real.dtype)  # over a last axis of size 1, which any strides allow


def view_as_complex(x: Any) -> Any:
    """Pairs along the last axis as complex numbers. ValueError where there are no pairs."""
    if x.shape[-1:] != (2,) or x.itemsize < 4:  # NumPy would make one number of four halves, two of four floats
        raise ValueError(f"view_as_complex: expected pairs of float32 or float64, got {x.dtype} of shape {x.shape}")
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


KERNELS: dict[str, Any] = {
    "basic_index": basic_index, "transpose": transpose, "t": t, "permute": permute, "alias": alias, "detach": alias,
    "view": view, "expand": expand, "squeeze": squeeze, "unsqueeze": unsqueeze,
    "view_as_real": view_as_real, "view_as_complex": view_as_complex,
}  # fmt: skip
