"""Attention: values, masks, shared heads, derivatives, errors."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F
from candelabra.nn._operators.attention import attention, attention_backward

from tests.nn.network_samples import array, normal, tensor

Q, K, V = normal(2, 3, 4, 6), normal(2, 3, 5, 6, seed=1), normal(2, 3, 5, 7, seed=2)
MASK = normal(4, 5, seed=3) > -0.5


def attended(q: Any, k: Any, v: Any, mask: Any = 0.0, scale: float | None = None) -> Any:
    """Return attention by its formula, in NumPy; rows without a key are zeros."""
    scores = q @ np.swapaxes(k, -2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale) + mask
    e = np.exp(scores - np.where(np.isinf(top := scores.max(-1, keepdims=True)), 0.0, top))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v


@pytest.mark.parametrize("scale", [None, 0.3, -0.3, 0.0])
def test_attention_weights_values_by_softmax_of_products(scale: float | None) -> None:
    """Leading dims are independent; the default scale is the reciprocal of the root of the width."""
    found = F.scaled_dot_product_attention(tensor(Q), tensor(K), tensor(V), scale=scale)
    np.testing.assert_allclose(array(found), attended(Q, K, V, scale=scale), rtol=1e-12)
    flat = F.scaled_dot_product_attention(tensor(Q[0, 0]), tensor(K), tensor(V), scale=scale)
    np.testing.assert_allclose(array(flat), attended(Q[0, 0], K, V, scale=scale), rtol=1e-12)


def test_bool_masks_select_keys_and_other_masks_are_added() -> None:
    """Results with bool masks, with number masks and with the causal mask agree with the formula."""
    q, k, v = tensor(Q), tensor(K), tensor(V)
    hidden = np.where(MASK, 0.0, -math.inf)
    np.testing.assert_allclose(
        array(F.scaled_dot_product_attention(q, k, v, cd.tensor(MASK))), attended(Q, K, V, hidden), rtol=1e-12
    )
    added = normal(2, 1, 4, 5, seed=4)
    np.testing.assert_allclose(
        array(F.scaled_dot_product_attention(q, k, v, tensor(added))), attended(Q, K, V, added), rtol=1e-12
    )
    past = np.where(np.tri(4, 5, dtype=bool), 0.0, -math.inf)
    np.testing.assert_allclose(
        array(F.scaled_dot_product_attention(q, k, v, is_causal=True)), attended(Q, K, V, past), rtol=1e-12
    )


@pytest.mark.parametrize("added", [False, True])
def test_a_query_without_keys_gets_zeros_and_finite_gradients(added: bool) -> None:
    """The results of the other queries do not change."""
    seen = MASK.copy()
    seen[2] = False
    mask = np.where(seen, 0.0, -math.inf) if added else seen
    q = tensor(Q).requires_grad_()
    found = F.scaled_dot_product_attention(q, tensor(K), tensor(V), cd.tensor(mask))
    np.testing.assert_allclose(array(found.detach()), attended(Q, K, V, np.where(seen, 0.0, -math.inf)), rtol=1e-12)
    found.sum().backward()
    assert q.grad is not None
    assert bool(q.grad.isfinite().all())
    assert not q.grad[:, :, 2].any()


def test_heads_of_keys_serve_several_of_the_query() -> None:
    """The first of two heads of keys serves the first half of the query's heads."""
    q, k, v = normal(2, 4, 3, 6), normal(2, 2, 5, 6, seed=1), normal(2, 1, 5, 7, seed=2)
    found = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), enable_gqa=True)
    want = attended(q, np.repeat(k, 2, 1), np.repeat(v, 4, 1))
    np.testing.assert_allclose(array(found), want, rtol=1e-12)


def test_dropout_drops_weights() -> None:
    """With p = 0.5 a weight is 0 or doubled; the same seed drops the same weights; with p = 1 all are dropped."""
    q, k, eye = tensor(Q), tensor(K), tensor(np.broadcast_to(np.eye(5), (2, 3, 5, 5)).copy())
    whole = F.scaled_dot_product_attention(q, k, eye)
    kept = []
    for _ in range(2):
        cd.manual_seed(3)
        kept.append(array(F.scaled_dot_product_attention(q, k, eye, dropout_p=0.5)))
    np.testing.assert_array_equal(*kept)
    zero = kept[0] == 0
    assert 0.2 < zero.mean() < 0.8
    np.testing.assert_allclose(kept[0][~zero], 2 * array(whole)[~zero], rtol=1e-12)
    assert not array(F.scaled_dot_product_attention(q, k, eye, dropout_p=1.0)).any()


def test_no_keys_and_no_queries() -> None:
    """The result is zeros without keys, and empty without queries."""
    none = F.scaled_dot_product_attention(tensor(Q), tensor(K)[:, :, :0], tensor(V)[:, :, :0])
    assert none.shape == (2, 3, 4, 7)
    assert not none.any()
    assert F.scaled_dot_product_attention(tensor(Q)[:, :, :0], tensor(K), tensor(V)).shape == (2, 3, 0, 7)


def test_half_precision_does_not_overflow_before_it_is_scaled() -> None:
    """Products of 60 and 60 over 64 dims overflow float16, but scaled products do not."""
    q = cd.full((1, 2, 64), 60.0, dtype=cd.float16)
    k = cd.full((1, 3, 64), 60.0, dtype=cd.float16)
    found = F.scaled_dot_product_attention(q, k, cd.ones(1, 3, 2, dtype=cd.float16))
    assert found.dtype is cd.float16
    np.testing.assert_allclose(np.asarray(found.tolist()), 1.0, rtol=2e-3)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": True}])
def test_derivatives(options: dict[str, Any]) -> None:
    """First and second derivatives by query, keys and values agree with finite differences."""
    if "attn_mask" in options:
        options = {"attn_mask": cd.tensor(MASK[:2, :3])}
    inputs = [cd.tensor(a[0, 0, :n, :2]).requires_grad_() for a, n in ((Q, 2), (K, 3), (V, 3))]
    assert gradcheck(lambda *a: F.scaled_dot_product_attention(*a, **options), inputs)
    assert gradgradcheck(lambda *a: F.scaled_dot_product_attention(*a, **options), inputs)


def test_a_learned_mask_has_a_gradient() -> None:
    """The gradient is that of the scores, summed over broadcast dims, alone or together with the other gradients."""
    mask = cd.tensor(normal(1, 3, seed=7)).requires_grad_()
    inputs = [cd.tensor(a[0, 0, :n, :2]) for a, n in ((Q, 2), (K, 3), (V, 3))]
    assert gradcheck(lambda m: F.scaled_dot_product_attention(*inputs, m), [mask])
    leaves = [t.clone().requires_grad_() for t in inputs]
    assert gradcheck(F.scaled_dot_product_attention, [*leaves, mask])
    assert gradgradcheck(F.scaled_dot_product_attention, [*leaves, mask])


OPERATOR_ERRORS = [
    (
        ((4, 3), (5, 2), (5, 2)),
        None,
        r"attention takes queries \(\*, L, E\), keys .* got shapes \[4, 3\], \[5, 2\] and",
    ),
    (((3,), (5, 3), (5, 2)), None, r"attention takes queries .* got shapes \[3\], \[5, 3\] and \[5, 2\]"),
    (((4, 3), (5, 3), (5, 2)), (4, 4), r"size of tensor a \(5\) must match the size of tensor b \(4\)"),
    (((4, 3), (5, 3), (5, 2)), (2, 4, 5), r"a mask of shape \[2, 4, 5\] does not broadcast to the scores', \[4, 5\]"),
]


@pytest.mark.parametrize(("shapes", "mask", "text"), OPERATOR_ERRORS)
def test_the_operator_names_shapes_that_do_not_match(shapes: Any, mask: Any, text: str) -> None:
    """Widths that differ, vectors, and masks of another shape or of more dims raise an error with the shapes."""
    with pytest.raises(RuntimeError, match=text):
        attention(*[cd.zeros(*s) for s in shapes], None if mask is None else cd.zeros(*mask), False, 1.0)


def test_the_operator_names_a_gradient_that_does_not_match() -> None:
    """A gradient of another shape raises an error, even if it would broadcast."""
    with pytest.raises(RuntimeError, match=r"expected a gradient of shape \[4, 2\], got \[1, 2\]"):
        attention_backward(*[cd.zeros(*s) for s in ((1, 2), (4, 3), (5, 3), (5, 2))], None, False, 1.0)


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"is_causal": True, "attn_mask": cd.tensor(MASK)}, "Explicit attn_mask should not be set when is_causal=True"),
    ({"query": cd.zeros(3)}, r"all be at least 2 dimensional, but got query\.dim: 1, key\.dim: 4 and value\.dim: 4"),
    (
        {"key": cd.zeros(5, 6)},
        r"query, key, and value to have the same dtype, but got query\.dtype: candelabra\.float64",
    ),
    ({"attn_mask": cd.zeros(4, 5)}, r"attn_mask dtype to be bool or that of query, but got attn_mask\.dtype: candela"),
    ({"enable_gqa": True, "key": tensor(K[:, :2])}, r"a multiple of the key's, got shapes \[2, 3, 4, 6\] and \[2, 2,"),
    (
        {"enable_gqa": True, "value": tensor(V[0, 0])},
        r"a multiple of the value's, got shapes \[2, 3, 4, 6\] and \[5, 7",
    ),
]


@pytest.mark.parametrize(("change", "text"), ERRORS, ids=[str(n) for n in range(len(ERRORS))])
def test_attention_names_arguments_that_do_not_match(change: dict[str, Any], text: str) -> None:
    """A mask with is_causal, too few dims, different dtypes and unsuitable numbers of heads raise errors."""
    arguments = {"query": tensor(Q), "key": tensor(K), "value": tensor(V), **change}
    with pytest.raises(RuntimeError, match=text):
        F.scaled_dot_product_attention(**arguments)
