"""The Transformer: an encoder and a decoder of layers of attention (Vaswani et al., NeurIPS 2017)."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import candelabra as cd
from candelabra import Tensor, is_grad_enabled
from candelabra.nn import init
from candelabra.nn._functional.masks import added_mask
from candelabra.nn.modules.container import ModuleList
from candelabra.nn.modules.module import Module
from candelabra.nn.modules.normalization import LayerNorm
from candelabra.nn.modules.transformer_layers import Activation, TransformerDecoderLayer, TransformerEncoderLayer
from candelabra.nn.modules.transformer_layers import _get_activation_fn as _get_activation_fn

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]  # fmt: skip


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer, one after the other, and a norm.

    ``enable_nested_tensor`` affects evaluation without gradients, with a padding mask whose padding is at the end: the
    output of padding is then 0 before the norm, as in PyTorch. ``mask_check=False`` says that the padding is there.
    Warns if the layer does not allow this.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_not_nested(encoder_layer) if enable_nested_tensor else None
        if reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}", stacklevel=2
            )
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the layers of ``src``. With ``is_causal=None``, a causal mask is recognised by its values."""
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = added_mask(mask, "mask", src.dtype)
        length = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(mask, is_causal, length)
        out: Any = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._drops_padding(src, padding):
            out = out.masked_fill((padding != 0).unsqueeze(-1), 0.0)
        return out if self.norm is None else self.norm(out)  # type: ignore[no-any-return]

    def _drops_padding(self, src: Tensor, padding: Tensor) -> bool:
        """Return whether PyTorch would compute a nested tensor, without the padding."""
        if not self.use_nested_tensor or self.layers[0].training or src.ndim != 3:
            return False
        if is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())):
            return False
        pads = padding != 0
        return not self.mask_check or bool((pads[:, 1:] >= pads[:, :-1]).all())


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer, one after the other, and a norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layers of ``tgt``. With ``tgt_is_causal=None``, a causal mask is recognised by its values."""
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        out: Any = tgt
        for layer in self.layers:
            out = layer(
                out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return out if self.norm is None else self.norm(out)  # type: ignore[no-any-return]


class Transformer(Module):
    """An encoder of ``src`` and a decoder of ``tgt``, which attends to the encoder's result.

    ``custom_encoder`` and ``custom_decoder`` replace them; the other arguments are those of
    :class:`TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        of_layers = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            device, dtype,
        )  # fmt: skip
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*of_layers)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*of_layers)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's result for ``tgt``. Raises ``RuntimeError`` for batches or widths that do not match."""
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        out: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip
        return out

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask (sz, sz): -inf for the positions after each one, 0 elsewhere."""
        return cd.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)

    def _reset_parameters(self) -> None:
        """Draw all parameters with more than one dim."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)


# Programs with layers of their own import the next three, and _get_activation_fn, by PyTorch's names.
def _get_clones(module: Module, N: int) -> ModuleList:
    """Return ``N`` deep copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """Return the length of the sequence."""
    length: int = src.shape[1 if src.ndim == 3 and batch_first else 0]
    return length


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Return the hint whether a mask is causal; without a hint, whether it has the causal mask's values.

    A compiled function must not read values, so it applies the mask.
    """
    if is_causal is not None or mask is None:
        return bool(is_causal)
    length = mask.shape[-2] if size is None else size
    if tuple(mask.shape) != (length, length) or cd.compiler.is_compiling():
        return False
    causal = Transformer.generate_square_subsequent_mask(length, mask.device, mask.dtype)
    return bool((mask == causal).all())


def _why_not_nested(layer: Any) -> str | None:
    """Return why a layer does not allow nested tensors in PyTorch, or None."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = (
        (layer.norm_first, "norm_first was True"),
        (not attention.batch_first,
         "self_attn.batch_first was not True(use batch_first for better inference performance)"),
        (not attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2, "self_attn.num_heads is odd"),
    )  # fmt: skip
    return next((f"encoder_layer.{reason}" for found, reason in reasons if found), None)


def __dir__() -> list[str]:
    return sorted(__all__)
