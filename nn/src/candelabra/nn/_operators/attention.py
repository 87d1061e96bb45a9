"""Attention as one operator, so that a device can compute it without storing all weights.

With ``w = softmax(q @ k.T * scale + mask)``, ``out = w @ v``, ``g`` the gradient of ``out`` and ``h = g @ v.T``:

    d out → scores:  s = w * (h - sum(w * h))     summed over the keys; also the gradient of the mask
    d out → q, k, v: s @ k * scale,  s.T @ q * scale,  w.T @ g
"""

from __future__ import annotations

import math

from candelabra.backend import broadcast_shapes
from candelabra.dtypes import bool_
from candelabra.library import batching, by, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor

softmax_backward = record("softmax_backward")
Ints = tuple[int, ...]


def attention_shapes(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the leading dims, and the last two of query, keys and values. Raises ``RuntimeError`` for a mismatch."""
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
    lead, q, _k, v = attention_shapes(query, keys, values, mask)
    return *lead, q[0], v[1]


@operator(_values, accepts="real floating", method=False, public=False, out=False, autocast="lower")
def attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    """``softmax(query @ keys.T * scale + mask) @ values``, of shape (*, L, Ev) (Vaswani et al., NeurIPS 2017).

    query (*, L, E), keys (*, S, E), values (*, S, Ev), leading dims broadcast; the mask broadcasts to (*, L, S).
    With ``is_causal``, query l uses the keys up to l. The result is 0 for a query whose keys are all masked.

    In half types the scores, the weights and the result may each be rounded; their sums are added in float32, as in
    :func:`matmul` and :func:`softmax`. A score s that is rounded to the unit roundoff u changes its weight by at most
    the factor ``exp(2 * u * max(abs(s)))``, so the result has an error of at most ``(2 * max(abs(s)) + 3) * u`` times
    the largest value, as long as ``u * max(abs(s))`` is small.
    """
    attention_shapes(query, keys, values, mask)
    return attention_weights(query, keys, mask, is_causal, scale) @ values


def attention_weights(query: Tensor, keys: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """Return the weight of each key for each query. Their sum is 1, or 0 for a query whose keys are all masked."""
    # Scaling both factors by half of the exponent delays the overflow of the product in float16.
    half = math.sqrt(abs(scale))
    scores = (query * half) @ (keys * math.copysign(half, scale)).transpose(-2, -1)
    if is_causal:
        scores = scores.masked_fill(_later_keys(scores), -math.inf)
    if mask is None:
        return scores.softmax(-1)
    scores = scores + mask
    empty = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def _later_keys(scores: Tensor) -> Tensor:
    """Return the mask of the keys after each query."""
    later: Tensor = record("new_full")(scores, scores.shape[-2:], True, dtype=bool_).triu(1)
    return later


class AttentionGradients(NamedTuple):
    """The gradients of query, keys and values."""

    query: Tensor
    keys: Tensor
    values: Tensor


def gradient_shapes(
    grad: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
) -> tuple[Ints, Ints, Ints]:
    """Return the shapes of the gradients. Raises ``RuntimeError`` for shapes that do not match."""
    lead, q, k, v = attention_shapes(query, keys, values, mask)
    if shape_of(grad) != (*lead, q[0], v[1]):
        raise RuntimeError(f"expected a gradient of shape {[*lead, q[0], v[1]]}, got {list(shape_of(grad))}")
    return (*lead, *q), (*lead, *k), (*lead, *v)


@operator(
    by(lambda *args: gradient_shapes(*args[:5])),
    result=(same, same, same),
    accepts="real floating",
    method=False,
    public=False,
    out=False,
)
def attention_backward(
    grad: Tensor, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> AttentionGradients:
    """The gradients of the inputs of :func:`attention`; ``grad`` (*, L, Ev) is the gradient of its result.

    The leading dims are those of the result: the gradient of an input that was broadcast is not yet summed.
    """
    gradient_shapes(grad, query, keys, values, mask)
    weights = attention_weights(query, keys, mask, is_causal, scale)
    slope = _score_gradient(weights, grad, values)
    by_key = (slope.transpose(-2, -1) @ query) * scale
    return AttentionGradients((slope @ keys) * scale, by_key, weights.transpose(-2, -1) @ grad)


def _score_gradient(weights: Tensor, grad: Tensor, values: Tensor) -> Tensor:
    """Return the gradient of the scores."""
    through = grad @ values.transpose(-2, -1)
    return weights * (through - (weights * through).sum(-1, keepdim=True))


def _attention_vjp(
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
    return *found, _score_gradient(attention_weights(query, keys, mask, is_causal, scale), g, values) if needs[
        3
    ] else None


attention.vjp(("query", "keys", "values", "mask"), _attention_vjp)


def _attention_along(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float,
    t_query: Tensor | None = None,
    t_keys: Tensor | None = None,
    t_values: Tensor | None = None,
    t_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    # d out = dw @ v + w @ dv  and  d scores = (dq @ k.T + q @ dk.T) * scale + d mask. The weights, which the tangent
    # needs, give the result, too.
    weights = attention_weights(query, keys, mask, is_causal, scale)
    t_scores = t_mask
    if t_query is not None:
        t_scores = _sum(t_scores, (t_query * scale) @ keys.transpose(-2, -1))
    if t_keys is not None:
        t_scores = _sum(t_scores, query @ (t_keys * scale).transpose(-2, -1))
    slope = None if t_values is None else weights @ t_values
    if t_scores is not None:
        slope = _sum(slope, softmax_backward.canonical(t_scores, weights, weights.ndim - 1) @ values)
    assert slope is not None  # at least one of the tangents exists
    return weights @ values, slope


def _sum(total: Tensor | None, term: Tensor) -> Tensor:
    return term if total is None else total + term


attention.jvp(_attention_along, joint=True)
attention.batched(batching.broadcasting(attention, ("query",)))
attention_backward.batched(batching.broadcasting(attention_backward, ("grad", "query")))
