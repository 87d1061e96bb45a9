"""The layers of the Transformer's encoder and decoder (Vaswani et al., NeurIPS 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn._functional.masks import added_mask
from candelabra.nn.modules.activation import GELU, MultiheadAttention, ReLU
from candelabra.nn.modules.dropout import Dropout
from candelabra.nn.modules.linear import Linear
from candelabra.nn.modules.module import Module
from candelabra.nn.modules.normalization import LayerNorm

__all__ = ["TransformerDecoderLayer", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """The common base of the layers: attention of a sequence to itself, and two linear maps with an activation."""

    norms = 2
    """The number of norms, and of dropouts of results that are added to the input."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = self._attention(d_model, nhead, dropout, bias, batch_first, device, dtype)
        if self.norms == 3:
            self.multihead_attn = self._attention(d_model, nhead, dropout, bias, batch_first, device, dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, device=device, dtype=dtype)
        self.norm_first = norm_first
        for i in range(1, self.norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        for i in range(1, self.norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    @staticmethod
    def _attention(
        width: int, heads: int, dropout: float, bias: bool, batch_first: bool, device: Any, dtype: Any
    ) -> MultiheadAttention:
        return MultiheadAttention(width, heads, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)

    def __setstate__(self, members: dict[str, Any]) -> None:
        members.setdefault("activation", F.relu)
        super().__setstate__(members)

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """Return the attention of a sequence to itself."""
        out = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
        dropped: Tensor = self.dropout1(out)
        return dropped

    def _feed_forward(self, x: Tensor) -> Tensor:
        """Return the two linear maps of each position."""
        out: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return out


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps of each position, each added to its input.

    A norm follows each of the two, or precedes it with ``norm_first``. ``activation`` is a function, "relu" or "gelu";
    tensors are (batch, sequence, d_model) with ``batch_first``, else (sequence, batch, d_model).

    Raises ``RuntimeError`` for another name of an activation.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            device, dtype,
        )  # fmt: skip
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            self.activation_relu_or_gelu = 1
        elif self.activation is F.gelu or isinstance(self.activation, GELU):
            self.activation_relu_or_gelu = 2
        else:
            self.activation_relu_or_gelu = 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer of ``src``; the masks are those of :class:`MultiheadAttention`."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = added_mask(src_mask, "src_mask", src.dtype)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        out: Tensor = self.norm2(x + self._ff_block(x))
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout2(self._feed_forward(x))
        return out


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, attention to a memory, then two linear maps, each added to its input.

    The arguments are those of :class:`TransformerEncoderLayer`.
    """

    norms = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer of ``tgt``, which attends to ``memory``, the encoder's result."""
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        out: Tensor = self.norm3(x + self._ff_block(x))
        return out

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the attention of a sequence to a memory."""
        out = self.multihead_attn(x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
        dropped: Tensor = self.dropout2(out)
        return dropped

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout3(self._feed_forward(x))
        return out


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """Return ``F.relu`` or ``F.gelu``. Raise ``RuntimeError`` for another name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    found: Callable[[Tensor], Tensor] = getattr(F, activation)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
