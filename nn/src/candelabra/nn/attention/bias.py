"""Causal masks of :func:`F.scaled_dot_product_attention`, which are named and not stored."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from candelabra import Tensor, empty, ones
from candelabra.dtypes import bool_

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask begins or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of ``seq_len_q`` queries and ``seq_len_kv`` keys; it has no elements until attention needs them.

    UPPER_LEFT: query i uses the keys up to i. LOWER_RIGHT: the last query uses all keys. Warns about LOWER_RIGHT with
    more queries than keys: the first queries then have no keys, and their result is 0 (NaN in PyTorch).
    """

    __slots__ = ("seq_len_kv", "seq_len_q", "variant")
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        out: CausalBias = empty(0).as_subclass(cls)
        out.variant, out.seq_len_q, out.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=3
            )
        return out

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        """Do nothing: ``__new__`` has initialized the tensor."""

    def _materialize(self, device: Any = None) -> Tensor:
        """Return the bool mask, True for the keys of each query."""
        lower_right = self.variant is CausalVariant.LOWER_RIGHT
        last = self.seq_len_kv - self.seq_len_q if lower_right else 0
        return ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=bool_).tril(last)

    def resolve(self, query: Tensor, is_causal: bool) -> tuple[Tensor | None, bool]:
        """Return mask and ``is_causal`` for attention. Raises ``ValueError`` if both are used."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        if self.seq_len_q == self.seq_len_kv or self.variant is CausalVariant.UPPER_LEFT:
            return None, True
        return self._materialize(query.device), False

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Return the causal mask (queries, keys) whose query i uses the keys up to i."""
    return _causal(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the causal mask (queries, keys) whose last query uses all keys, as for a prefix that is cached."""
    return _causal(CausalVariant.LOWER_RIGHT, size)


def _causal(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    return CausalBias(variant, *size)


def __dir__() -> list[str]:
    return sorted(__all__)
