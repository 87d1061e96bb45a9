"""Multi-head attention (Vaswani et al., NeurIPS 2017). Its public path is ``nn.modules.activation``, as in PyTorch."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.linear import NonDynamicallyQuantizableLinear
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of ``num_heads`` heads, which share the width ``embed_dim``.

    ``kdim`` and ``vdim`` are the widths of keys and values, ``embed_dim`` by default. ``dropout`` is the probability of
    dropout of the weights in training. ``add_bias_kv`` trains one more key and value, ``add_zero_attn`` adds one of
    zeros. With ``batch_first``, tensors are (batch, sequence, width), otherwise (sequence, batch, width).

    Raises ``ValueError`` for sizes that are not positive, ``AssertionError`` if the heads do not divide the width.
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": None,
        }
        if self._qkv_same_embed_dim:
            shapes = {**dict.fromkeys(shapes), "in_proj_weight": (3 * embed_dim, embed_dim)}
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for name, shape in shapes.items():
            made = None if shape is None else Parameter(cd.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, made)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            value = Parameter(cd.empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None
            setattr(self, name, value)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the weights of the projections of the input and the biases of keys and values; set the others to 0."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result and the weights of attention; see :func:`F.multi_head_attention_forward`."""
        swapped = self.batch_first and query.ndim == 3
        if swapped and key.ndim == 3 and value.ndim == 3:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            self.training, key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim,
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal,
        )  # fmt: skip
        return out.transpose(0, 1) if swapped else out, weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Return one mask, and its kind: 1 for a mask (N, L) of keys alone, 2 for (N, heads, L, L), None without masks.

        The masks are numbers to be added; ``query`` is (N, L, E).
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _width = query.shape
        merged = attn_mask.reshape(batch if attn_mask.ndim == 3 else 1, -1, length, length)
        if attn_mask.ndim != 3:
            merged = merged.expand(batch, self.num_heads, length, length)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.reshape(batch, 1, 1, length)
        return merged, 2


def __dir__() -> list[str]:
    return sorted(__all__)
