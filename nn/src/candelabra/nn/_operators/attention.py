"""Attention as one operator, so that a device may do it without keeping a weight for every query and key.

With ``w = softmax(q @ k.T * scale + mask)``, ``out = w @ v``, ``g`` the gradient of ``out`` and ``h = g @ v.T``:

    d out → scores:  s = w * (h - sum(w * h))     over the keys; it is the gradient of the mask too
    d out → q, k, v: s @ k * scale,  s.T @ q * scale,  w.T @ g
"""

from __future__ import annotations

import math

from candelabra.backend import broadcast_shapes
from candelabra.dtypes import bool_
from candelabra.library import by, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def attended(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Ints, Ints, Ints, Ints]:
    """(leading dims, the last two of query, keys and value). Raises ``RuntimeError`` where shapes do not fit."""
    q, k, v = shape_of(query), shape_of(keys), shape_of(values)
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise RuntimeError(
            f"attention takes queries (*, L, E), keys (*, S, E) and values (*, S, Ev), got shapes {list(q)}, {list(k)} "
            f"and {list(v)}"
        )
    lead = broadcast_shapes(q[:-2], k[:-2], v[:-2])
    scores = (*lead, q[-2], k[-2])
    if mask is not None and broadcast_shapes(scores, shape_of(mask)) != scores:
        raise RuntimeError(f"a mask of shape {list(shape_of(mask))} does not broadcast to the scores', {list(scores)}")
    return lead, q[-2:], k[-2:], v[-2:]


@by
def _values(query: Tensor, keys: Tensor, values: Tensor, mask: Any, *_: Any) -> Ints:
    lead, q, _k, v = attended(query, keys, values, mask)
    return *lead, q[0], v[1]


@operator(_values, accepts="real floating", method=False, public=False, out=False)
def attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    """``softmax(query @ keys.T * scale + mask) @ values``, of shape (*, L, Ev) (Vaswani et al., NeurIPS 2017).

    query (*, L, E), keys (*, S, E), values (*, S, Ev), leading dims broadcast; the mask broadcasts to (*, L, S).
    ``is_causal``: query l sees the keys up to l. A query that the mask leaves without a key gets zeros.
    """
    attended(query, keys, values, mask)
    return attention_weights(query, keys, mask, is_causal, scale) @ values


def attention_weights(query: Tensor, keys: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """How much each query takes of each key: 1 in all, or 0 where a mask leaves it none."""
    # Each factor takes half of the scale: the product of two in float16 overflows later.
    half = math.sqrt(abs(scale))
    scores = (query * half) @ (keys * math.copysign(half, scale)).transpose(-2, -1)
    if is_causal:
        scores = scores.masked_fill(_future(scores), -math.inf)
    if mask is None:
        return scores.softmax(-1)
    scores = scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def _future(scores: Tensor) -> Tensor:
    """The keys that come after each query."""
    later: Tensor = record("new_full")(scores, scores.shape[-2:], True, dtype=bool_).triu(1)
    return later


class AttentionGradients(NamedTuple):
    """The gradients of query, keys and values."""

    query: Tensor
    keys: Tensor
    values: Tensor


def differentiated(
    grad: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
) -> tuple[Ints, Ints, Ints]:
    """The shapes of the gradients. Raises ``RuntimeError`` where shapes do not fit."""
    lead, q, k, v = attended(query, keys, values, mask)
    if shape_of(grad) != (*lead, q[0], v[1]):
        raise RuntimeError(f"expected a gradient of shape {[*lead, q[0], v[1]]}, got {list(shape_of(grad))}")
    return (*lead, *q), (*lead, *k), (*lead, *v)


@operator(
    by(lambda *args: differentiated(*args[:5])),
    result=(same, same, same),
    accepts="real floating",
    method=False,
    public=False,
    out=False,
)
def attention_backward(
    grad: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> AttentionGradients:
    """What :func:`attention` hands back when ``grad`` (*, L, Ev) is the gradient of its result.

    Leading dims are the result's: where an input was broadcast, its gradient is still to be summed.
    """
    differentiated(grad, query, keys, values, mask)
    weights = attention_weights(query, keys, mask, is_causal, scale)
    slope = _slope(weights, grad, values)
    by_key = (slope.transpose(-2, -1) @ query) * scale
    return AttentionGradients((slope @ keys) * scale, by_key, weights.transpose(-2, -1) @ grad)


def _slope(weights: Tensor, grad: Tensor, values: Tensor) -> Tensor:
    """The gradient of the scores."""
    through = grad @ values.transpose(-2, -1)
    return weights * (through - (weights * through).sum(-1, keepdim=True))


def _attention_back(
    needs: tuple[bool, bool, bool, bool],
    g: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor | None, ...]:
    found: tuple[Tensor | None, ...] = (None, None, None)
    if any(needs[:3]):
        found = attention_backward(g, query, keys, values, mask, is_causal, scale)
    return *found, _slope(attention_weights(query, keys, mask, is_causal, scale), g, values) if needs[3] else None


attention.vjp(("query", "keys", "values", "mask"), _attention_back)
