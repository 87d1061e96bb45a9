"""Multi-head attention: projections of queries, keys and values, attention in each head, and a projection of the result
(Vaswani et al., NeurIPS 2017).

Tensors are (sequence, batch, width). Within a call, heads are (batch, heads, sequence, width of a head), and masks are
numbers that broadcast to (batch, heads, L, S) and are added to the scores.
"""

from __future__ import annotations

import math

from candelabra.library import public, record
from candelabra.nn._functional.attention import scaled_dot_product_attention
from candelabra.nn._functional.dropout import dropout
from candelabra.nn._functional.masks import added_mask
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

linear = record("linear")


@public(namespace="nn.functional")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of ``num_heads`` heads, and its weights: (L, N, E), and (N, L, S), or (N, num_heads, L, S) without
    ``average_attn_weights``, or None without ``need_weights``.

    query (L, N, E), key (S, N, K) and value (S, N, V), or without the batch N. ``in_proj_weight`` (3E, E) projects
    all three, or ``q_proj_weight`` (E, E), ``k_proj_weight`` (E, K) and ``v_proj_weight`` (E, V) with
    ``use_separate_proj_weight``; ``static_k`` and ``static_v`` (N * num_heads, S, E / num_heads) replace the projected
    keys and values. ``bias_k`` and ``bias_v`` (1, 1, E) are one more key and value, ``add_zero_attn`` adds zeros.

    ``key_padding_mask`` (N, S) and ``attn_mask`` (L, S) or (N * num_heads, L, S) are added to the scores; if they are
    bool, True excludes a key. ``is_causal`` says that ``attn_mask`` is the causal mask. A query whose keys are all
    excluded gets NaN if the weights are needed, 0 otherwise, as in PyTorch.

    Raises ``AssertionError`` and ``RuntimeError``, as PyTorch does, for shapes that do not match.
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = added_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else added_mask(attn_mask, "attn_mask", query.dtype)
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        weights = _separate_weights(key, value, q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        weights = _packed_weights(key, value, in_proj_weight)
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = [linear.function(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
    mask = _mask_of_heads(mask, (batch, num_heads, length, key.shape[0]))
    k, v, added = _with_biases(k, v, bias_k, bias_v, static_k, static_v)
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else _static_heads(static_k, "static_k", q)
    v = _heads(v, num_heads) if static_v is None else _static_heads(static_v, "static_v", q)
    if add_zero_attn:
        k, v, added = _with_zeros(k), _with_zeros(v), added + 1
    mask = _combined(_lengthened(mask, added), _lengthened(padding, added), k)
    if not training:
        dropout_p = 0.0
    found: Tensor | None = None
    if need_weights:
        out, found = _attention_with_weights(q, k, v, mask, dropout_p)
        found = found.mean(1) if average_attn_weights else found
        found = found if batched else found.squeeze(0)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    out = linear.function(out.permute(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), found


def _check_dims(
    query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """Return whether the tensors have a batch. Raises ``AssertionError`` if their numbers of dims do not match."""
    dims = query.ndim
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    given = f"For {'batched (3-D)' if dims == 3 else 'unbatched (2-D)'} `query`, expected"
    if key.ndim != dims or value.ndim != dims:
        raise AssertionError(
            f"{given} `key` and `value` to be {dims}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != dims - 1:
        raise AssertionError(
            f"{given} `key_padding_mask` to be `None` or {dims - 1}-D but found {padding.ndim}-D tensor instead"
        )
    if mask is not None:
        if mask.ndim not in (2, 3):
            raise AssertionError(f"{given} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead")
        expected = (heads, query.shape[0], key.shape[0])
        if dims == 2 and mask.ndim == 3 and tuple(mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return dims == 3


# -- masks ------------------------------------------------------------------------------------------------------------
def _mask_of_heads(mask: Tensor | None, scores: tuple[int, int, int, int]) -> Tensor | None:
    """Return a mask (L, S) or (N * heads, L, S) with the four dims of the scores, some of them of size 1."""
    if mask is None:
        return None
    batch, heads, length, keys = scores
    shape = (length, keys) if mask.ndim == 2 else (batch * heads, length, keys)
    if tuple(mask.shape) != shape:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {shape}.")
    return mask.reshape((1, 1, length, keys) if mask.ndim == 2 else scores)


def _lengthened(mask: Tensor | None, count: int) -> Tensor | None:
    """Return a mask for ``count`` more keys, which it does not exclude."""
    if mask is None or not count:
        return mask
    from candelabra import cat

    return cat((mask, mask.new_zeros((*mask.shape[:-1], count))), -1)


def _combined(mask: Tensor | None, padding: Tensor | None, keys: Tensor) -> Tensor | None:
    """Return the sum of the mask of the scores and the mask (N, S) of the keys."""
    if padding is None:
        return mask
    batch, count = keys.shape[0], keys.shape[2]
    for dim, expected in enumerate((batch, count)):
        if padding.shape[dim] != expected:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {padding.shape[dim]}"
            )
    padding = padding.reshape(batch, 1, 1, count)
    return padding if mask is None else mask + padding


# -- projections ------------------------------------------------------------------------------------------------------
def _packed_weights(key: Tensor, value: Tensor, weight: Tensor | None) -> tuple[Tensor, ...]:
    """Return the three weights that ``in_proj_weight`` consists of."""
    if tuple(key.shape) != tuple(value.shape):
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    return weight.chunk(3)


def _separate_weights(key: Tensor, value: Tensor, *weights: Tensor | None) -> tuple[Tensor, ...]:
    """Return the three weights, which must be there."""
    lead, other = key.shape[:2], value.shape[:2]
    if tuple(lead) != tuple(other):
        raise AssertionError(f"key's sequence and batch dims {lead} do not match value's {other}")
    found = []
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        found.append(weight)
    return tuple(found)


# -- keys and values --------------------------------------------------------------------------------------------------
def _with_biases(
    k: Tensor,
    v: Tensor,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
) -> tuple[Tensor, Tensor, int]:
    """Return keys and values with the biases at their end, and the number of keys added."""
    if bias_k is None or bias_v is None:
        if bias_k is not None:
            raise AssertionError("bias_k is set but bias_v is None")
        if bias_v is not None:
            raise AssertionError("bias_v is set but bias_k is None")
        return k, v, 0
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    from candelabra import cat

    batch = k.shape[1]
    return cat((k, bias_k.expand(1, batch, -1))), cat((v, bias_v.expand(1, batch, -1))), 1


def _heads(projected: Tensor, count: int) -> Tensor:
    """Return (N, heads, L, width of a head) of (L, N, E)."""
    length, batch, width = projected.shape
    return projected.reshape(length, batch, count, width // count).permute(1, 2, 0, 3)


def _static_heads(static: Tensor, name: str, q: Tensor) -> Tensor:
    """Return keys or values (N * heads, S, width of a head) with their heads as a dim."""
    batch, heads, _length, width = q.shape
    for dim, expected in ((0, batch * heads), (2, width)):
        if static.shape[dim] != expected:
            raise AssertionError(f"expecting {name}.size({dim}) of {expected}, but got {static.shape[dim]}")
    return static.reshape(batch, heads, static.shape[1], width)


def _with_zeros(heads: Tensor) -> Tensor:
    """Return keys or values with one more, of zeros."""
    from candelabra import cat

    batch, count, _length, width = heads.shape
    return cat((heads, heads.new_zeros((batch, count, 1, width))), 2)


def _attention_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    """Return attention and its weights, to which dropout is applied."""
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ v, weights
