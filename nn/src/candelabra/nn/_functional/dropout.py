"""Dropout: elements or channels set to 0 at random."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.dtypes import get_default_dtype
from candelabra.library import public, record
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

cast = record("cast")
copied = record("copied")


@public(namespace="nn.functional")
def masked_dropout(input: Tensor, mask: Tensor, p: float) -> Tensor:
    """Apply dropout with a given mask, 1 with probability 1 - p and 0 otherwise: ``input * mask / (1 - p)``."""
    out: Tensor = input * (cast(mask, dtype=input.dtype) * (0.0 if p == 1 else 1.0 / (1.0 - p)))
    return out


def _draw_mask(input: Tensor, shape: Sequence[int], p: float) -> Tensor:
    """Draw a bool mask of ``shape`` on the input's device, False with probability ``p``."""
    from candelabra import rand_like

    like = input if shape == input.shape else input.new_empty(shape)
    mask: Tensor = rand_like(like, dtype=get_default_dtype()) >= p
    return mask


def _written(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """Return the result; ``inplace``: write it into the input and return that."""
    out: Tensor = copied.form("inplace")(input, result) if inplace else result
    return out


def _dropout(input: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    """Apply dropout with a mask of ``shape``, which broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    return _written(input, masked_dropout(input, _draw_mask(input, shape, p), p), inplace)


@public(namespace="nn.functional")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to 0 with probability ``p`` and divide the others by ``1 - p``.

    The input is returned if ``training`` is False.
    """
    return _dropout(input, tuple(input.shape), p, training, inplace)


def _channel_mask_shape(name: str, input: Tensor, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a mask with one element per channel."""
    if input.ndim not in ranks:
        raise RuntimeError(
            f"{name}: Expected {' or '.join(f'{r}D' for r in ranks)} input, but received a {input.ndim}D input"
        )
    lead = 2 if input.ndim == ranks[-1] else 1
    return (*input.shape[:lead], *[1] * (input.ndim - lead))


@public(namespace="nn.functional")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, L) or (C, L)."""
    return _dropout(input, _channel_mask_shape("dropout1d", input, (2, 3)), p, training, inplace)


@public(namespace="nn.functional")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, H, W) or (C, H, W)."""
    return _dropout(input, _channel_mask_shape("dropout2d", input, (3, 4)), p, training, inplace)


@public(namespace="nn.functional")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropout(input, _channel_mask_shape("dropout3d", input, (4, 5)), p, training, inplace)


SATURATION = 1.7580993408473766
"""The negative of the value at which :func:`selu` saturates: its scale times its alpha."""


def _alpha_dropout(input: Tensor, shape: Sequence[int], p: float, training: bool, inplace: bool) -> Tensor:
    """Apply alpha dropout with a mask of ``shape``, which broadcasts to the input's."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0 or not input.numel():
        return input
    if p == 1.0:
        out = input * 0.0
    else:
        # Dropped elements get the saturated value; scale and shift then restore mean 0 and variance 1.
        scale = ((SATURATION**2 * p + 1) * (1 - p)) ** -0.5
        kept = cast(_draw_mask(input, shape, p), dtype=input.dtype)
        out = input * (kept * scale) + ((kept - 1) * (SATURATION * scale) + SATURATION * scale * p)
    return _written(input, out, inplace)


@public(namespace="nn.functional")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for :func:`selu` (Klambauer et al., 2017)."""
    return _alpha_dropout(input, tuple(input.shape), p, training, inplace)


@public(namespace="nn.functional")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """:func:`alpha_dropout` of whole channels of (N, C, *)."""
    if training and p and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha_dropout(input, (*input.shape[:2], *[1] * (input.ndim - 2)), p, training, inplace)
