"""Elements or channels set to 0 at random, as in ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from candelabra.library import record

if TYPE_CHECKING:
    from candelabra import Tensor

cast = record("cast")
copied = record("copied")


def masked_dropout(input: Tensor, mask: Tensor, p: float) -> Tensor:
    """``input * mask / (1 - p)``: what is kept of dropout once the mask (1 with probability 1 - p, else 0) is drawn."""
    kept: Tensor = input * (cast(mask, dtype=input.dtype) * (0.0 if p == 1 else 1.0 / (1.0 - p)))
    return kept


def _dropped(input: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout with a mask of ``shape``, which broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    from candelabra import rand

    mask = rand(*shape, device=input.device) >= p
    out = masked_dropout(input, mask, p)
    if inplace:
        written: Tensor = copied.form("inplace")(input, out)
        return written
    return out


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements set to 0 with probability ``p``, the others divided by ``1 - p``; nothing unless ``training``."""
    return _dropped(input, tuple(input.shape), p, training, inplace)


def _channels(name: str, input: Tensor, ranks: tuple[int, ...]) -> tuple[int, ...]:
    if input.ndim not in ranks:
        raise RuntimeError(
            f"{name}: Expected {' or '.join(f'{r}D' for r in ranks)} input, but received a {input.ndim}D input"
        )
    lead = 2 if input.ndim == ranks[-1] else 1
    return (*input.shape[:lead], *[1] * (input.ndim - lead))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, L) or (C, L)."""
    return _dropped(input, _channels("dropout1d", input, (2, 3)), p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, H, W) or (C, H, W)."""
    return _dropped(input, _channels("dropout2d", input, (3, 4)), p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropped(input, _channels("dropout3d", input, (4, 5)), p, training, inplace)


SATURATION = 1.7580993408473766
"""Minus the value at which :func:`selu` saturates: its scale times its alpha."""


def _alpha_dropped(input: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    """Alpha dropout with a mask of ``shape``, which broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0 or not input.numel():
        return input
    from candelabra import rand

    if p == 1.0:
        out = input * 0.0
    else:
        # What is dropped takes the saturated value; scale and shift then bring mean 0 and variance 1 back.
        scale = ((SATURATION**2 * p + 1) * (1 - p)) ** -0.5
        kept = cast(rand(*shape, device=input.device) >= p, dtype=input.dtype)
        out = input * (kept * scale) + ((kept - 1) * (SATURATION * scale) + SATURATION * scale * p)
    if inplace:
        written: Tensor = copied.form("inplace")(input, out)
        return written
    return out


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for :func:`selu` (Klambauer et al., 2017)."""
    return _alpha_dropped(input, tuple(input.shape), p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """:func:`alpha_dropout` of whole channels of (N, C, *)."""
    if training and p and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha_dropped(input, (*input.shape[:2], *[1] * (input.ndim - 2)), p, training, inplace)
