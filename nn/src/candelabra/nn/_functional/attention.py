"""Scaled dot product attention."""

from __future__ import annotations

import math

from candelabra.dtypes import bool_
from candelabra.library import Tensor, public
from candelabra.nn._functional.dropout import dropout
from candelabra.nn._operators.attention import attention, attention_weights


@public(namespace="nn.functional")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``, of shape (*, L, Ev) (Vaswani et al., NeurIPS 2017).

    query (*, L, E), key (*, S, E), value (*, S, Ev), of one floating dtype; leading dims broadcast. ``attn_mask``
    broadcasts to (*, L, S): booleans select the keys, numbers of the query's dtype are added to the scores. With
    ``is_causal``, position l uses the keys up to l. ``scale`` is ``1 / sqrt(E)`` by default. The result is 0 for a
    query without keys. ``dropout_p`` is the probability of dropout of the weights. With ``enable_gqa``, each head of
    key and value, the dim before the last two, serves several heads of the query (Ainslie et al., EMNLP 2023).

    Raises ``RuntimeError`` for a mask together with ``is_causal``, and if dims, dtypes or numbers of heads do not
    match.
    """
    if attn_mask is not None and type(attn_mask) is not Tensor:
        attn_mask, is_causal = _resolved(attn_mask, query, is_causal)
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = (_repeated_heads(t, query, name) for t, name in ((key, "key"), (value, "value")))
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    if attn_mask is not None and attn_mask.dtype is bool_:
        attn_mask = query.new_zeros(attn_mask.shape).masked_fill(attn_mask.logical_not(), -math.inf)
    if dropout_p:
        return dropout(attention_weights(query, key, attn_mask, is_causal, scale), dropout_p) @ value
    return attention(query, key, value, attn_mask, is_causal, scale)


def _resolved(mask: Tensor, query: Tensor, is_causal: bool) -> tuple[Tensor | None, bool]:
    """Return mask and ``is_causal`` for an instance of a subclass, which may be a causal mask without elements."""
    from candelabra.nn.attention.bias import CausalBias

    return mask.resolve(query, is_causal) if isinstance(mask, CausalBias) else (mask, is_causal)


def _repeated_heads(t: Tensor, query: Tensor, name: str) -> Tensor:
    """Repeat each head of key or value for the heads of the query that share it."""
    dims = min(t.ndim, query.ndim)
    heads, query_heads = (t.shape[-3], query.shape[-3]) if dims > 2 else (0, 0)
    if not heads or query_heads % heads:
        raise RuntimeError(
            f"scaled_dot_product_attention: with enable_gqa the query's number of heads is a multiple of the {name}'s, "
            f"got shapes {list(query.shape)} and {list(t.shape)}"
        )
    return t.repeat_interleave(query_heads // heads, -3)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
    if is_causal and mask is not None:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got "
            f"query.dim: {query.ndim}, key.dim: {key.ndim} and value.dim: {value.ndim}"
        )
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            "scaled_dot_product_attention: Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype}, key.dtype: {key.dtype} and value.dtype: {value.dtype}"
        )
    if mask is not None and mask.dtype is not bool_ and mask.dtype is not query.dtype:
        raise RuntimeError(
            "scaled_dot_product_attention: Expected attn_mask dtype to be bool or that of query, but got "
            f"attn_mask.dtype: {mask.dtype} and query.dtype: {query.dtype}"
        )
