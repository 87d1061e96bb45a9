"""Dropout: elements or channels set to 0 at random."""

from __future__ import annotations

import warnings

from candelabra.dtypes import float32, get_default_dtype
from candelabra.library import overloads, public, record, take_counters
from candelabra.nn._operators.dropout import dropout as dropped
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


def _draw_mask(input: Tensor, lead: int | None, p: float) -> Tensor:
    """Draw a bool mask on the input's device, False with probability ``p``.

    It has one element for each index of the first ``lead`` dims; None: for each element of the input.
    """
    from candelabra import rand_like

    if lead is not None and input.ndim < lead:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    like = input if lead is None else input.new_empty((*input.shape[:lead], *[1] * (input.ndim - lead)))
    mask: Tensor = rand_like(like, dtype=get_default_dtype()) >= p
    return mask


def _written(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """Return the result; ``inplace``: write it into the input and return that."""
    out: Tensor = copied.form("inplace")(input, result) if inplace else result
    return out


def _check_floating(input: Tensor) -> None:
    """Raise ``RuntimeError`` for integers, which cannot be divided by ``1 - p``."""
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"result type {get_default_dtype().title} can't be cast to the desired output type {input.dtype.title}"
        )


def _dropout(input: Tensor, lead: int | None, p: float, training: bool, inplace: bool) -> Tensor:
    """Apply dropout to the elements, or to the parts with a common index of the first ``lead`` dims."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    _check_floating(input)
    if lead is None:
        instance = input._instance
        instance.keys_for(float32)  # raises before the generator advances
        seed, offset = take_counters("dropout", None, instance, "uniform", input.numel(), float32.name)
        return _written(input, dropped.canonical(input, p, seed, offset).values, inplace)
    return _written(input, masked_dropout(input, _draw_mask(input, lead, p), p), inplace)


@public(namespace="nn.functional")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to 0 with probability ``p`` and divide the others by ``1 - p``.

    The input is returned if ``training`` is False.
    """
    return _dropout(input, None, p, training, inplace)


def _warn_of_rank(name: str, input: Tensor, spatial: int) -> None:
    """Warn, as PyTorch does, if the input has neither ``spatial`` dims after its channels nor a batch of them."""
    if input.ndim not in (spatial + 1, spatial + 2):
        warnings.warn(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. {name} drops channels of {spatial + 1}-D or {spatial + 2}-D inputs; use dropout for "
            "others.",
            stacklevel=4,
        )


@public(namespace="nn.functional")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, L) or (C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input")
    return _dropout(input, input.ndim - 1, p, training, inplace)


@public(namespace="nn.functional")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, H, W).

    As in PyTorch, other inputs are (N, C, *) too, with a warning: 3-d ones are not (C, H, W).
    """
    _warn_of_rank("dropout2d", input, 2)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. Use dropout1d for it.",
            stacklevel=3,
        )
    return _dropout(input, 2, p, training, inplace)


@public(namespace="nn.functional")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """:func:`dropout` of whole channels of (N, C, D, H, W) or (C, D, H, W).

    As in PyTorch, other inputs are (C, *), with a warning.
    """
    _warn_of_rank("dropout3d", input, 3)
    return _dropout(input, 2 if input.ndim == 5 else 1, p, training, inplace)


SATURATION = 1.7580993408473766
"""The negative of the value at which :func:`selu` saturates: its scale times its alpha."""


def _alpha_dropout(input: Tensor, lead: int | None, p: float, training: bool, inplace: bool) -> Tensor:
    """Apply alpha dropout to the elements, or to the parts with a common index of the first ``lead`` dims."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0 or not input.numel():
        return input
    _check_floating(input)
    if p == 1.0:
        out = input * 0.0
    else:
        # Dropped elements get the saturated value; scale and shift then restore mean 0 and variance 1.
        scale = ((SATURATION**2 * p + 1) * (1 - p)) ** -0.5
        kept = cast(_draw_mask(input, lead, p), dtype=input.dtype)
        out = input * (kept * scale) + ((kept - 1) * (SATURATION * scale) + SATURATION * scale * p)
    return _written(input, out, inplace)


@public(namespace="nn.functional")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for :func:`selu` (Klambauer et al., 2017)."""
    return _alpha_dropout(input, None, p, training, inplace)


@public(namespace="nn.functional")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """:func:`alpha_dropout` of whole channels of (N, C, *)."""
    return _alpha_dropout(input, 2, p, training, inplace)


# -- the functions of the top namespace, which have no defaults --------------------------------------------------------
def _check_probability(p: float) -> None:
    """Raise ``RuntimeError`` for a probability outside of [0, 1]; the functions of networks raise ``ValueError``."""
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


@public(public=False)
def plain_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set elements to 0 with probability ``p`` and divide the others by ``1 - p``, if ``train``."""
    _check_probability(p)
    return _dropout(input, None, p, train, False)


dropout_overloads = overloads("dropout", plain_dropout, method=False)


@public(name="dropout_", method=False)
def plain_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout to the input itself, if ``train``."""
    _check_probability(p)
    return _dropout(input, None, p, train, True)


@public(method=False)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout to whole channels of (N, C, *), if ``train``."""
    _check_probability(p)
    return _dropout(input, 2, p, train, False)


@public(method=False)
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout to whole channels of the input (N, C, *) itself, if ``train``."""
    _check_probability(p)
    return _dropout(input, 2, p, train, True)


@public(name="alpha_dropout", method=False)
def plain_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout that keeps mean 0 and variance 1, if ``train``."""
    _check_probability(p)
    return _alpha_dropout(input, None, p, train, False)


@public(name="alpha_dropout_", method=False)
def plain_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout to the input itself, if ``train``."""
    _check_probability(p)
    return _alpha_dropout(input, None, p, train, True)


@public(name="feature_alpha_dropout", method=False)
def plain_feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout to whole channels of (N, C, *), if ``train``."""
    _check_probability(p)
    return _alpha_dropout(input, 2, p, train, False)


@public(method=False)
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout to whole channels of the input (N, C, *) itself, if ``train``."""
    _check_probability(p)
    return _alpha_dropout(input, 2, p, train, True)
