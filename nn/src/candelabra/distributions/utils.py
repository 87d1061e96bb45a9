"""Parameters: broadcasting, lazy properties, probabilities and logits, triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final

import candelabra as cd
from candelabra import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant: Final = 0.57721566490153286060
NUMBER: Final = (bool, int, float)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return tensors and numbers as tensors of one shape.

    Numbers take the dtype and the device of the first tensor, or the default dtype if there is none. Raises
    ``ValueError`` for other objects.
    """
    if not all(isinstance(v, (Tensor, *NUMBER)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, candelabra.Tensor or objects implementing "
            "__torch_function__."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options: dict[str, Any] = (
        {"dtype": cd.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    )
    tensors = [v if isinstance(v, Tensor) else cd.tensor(v, **options) for v in values]
    return tuple(cd.broadcast_tensors(*tensors))


def standard_normal(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return standard normal numbers in the dtype and on the device of ``like``."""
    return cd.randn(shape, dtype=like.dtype, device=like.device)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Return draws from the standard normal distribution, by PyTorch's internal name, which other libraries use."""
    return cd.randn(shape, dtype=dtype, device=device)


def uniform(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return uniform numbers in [0, 1) in the dtype and on the device of ``like``."""
    return cd.rand(shape, dtype=like.dtype, device=like.device)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum out the last ``dim`` dimensions."""
    return value.flatten(value.dim() - dim).sum(-1) if dim else value


_sum_rightmost = sum_rightmost  # PyTorch's internal name, which other libraries use


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities: of log odds if binary, else of log probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Limit probabilities to [eps, 1 - eps] of their dtype."""
    eps = cd.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log odds of probabilities if binary, else their logarithms."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """A property that is computed at the first use and then kept as an attribute, with its graph."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type] # an object with a function's name and docstring

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with cd.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value

    if TYPE_CHECKING:  # distributions assign the attribute if they are given it

        def __set__(self, instance: Any, value: Any) -> None: ...


def _below(size: int, diag: int, like: Tensor) -> Tensor:
    places = cd.arange(size, device=like.device)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements on and below a diagonal of matrices, in the order of rows.

    Raises ``ValueError`` for a diagonal outside of the matrix.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag, mat)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return square matrices with these elements on and below a diagonal: the inverse of `tril_matrix_to_vec`.

    Raises ``ValueError`` for a length that is not that of a triangle.
    """
    # The positive root of n**2 + (1 + 2 diag) n - |diag| (diag + 1) - 2 length, with the sign of the corner cut off.
    odd = 1 + 2 * diag
    n = (-odd + (odd**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > cd.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of "
            "a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    mat[..., _below(size, diag, vec)] = vec
    return mat


def __dir__() -> list[str]:
    return sorted(__all__)
