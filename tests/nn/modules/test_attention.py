"""MultiheadAttention and its function: values by the formula in NumPy, masks, added keys, errors."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

E, HEADS, L, S, N = 6, 3, 4, 5, 2
CAUSAL = np.triu(np.ones((L, L), bool), 1)


def softmax(x: np.ndarray) -> np.ndarray:
    """Return softmax along the last dim; NaN for rows of -inf."""
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def attended(module: nn.MultiheadAttention, q: Any, k: Any, v: Any, mask: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the result (L, N, E) and the weights (N, heads, L, S) by the formula, from the module's parameters."""
    p = {name: array(value.detach()) for name, value in module.named_parameters()}
    packed = "in_proj_weight" in p
    w = np.split(p["in_proj_weight"], 3) if packed else [p[f"{n}_proj_weight"] for n in "qkv"]
    b = np.split(p["in_proj_bias"], 3) if "in_proj_bias" in p else [0, 0, 0]
    q, k, v = (x @ wi.T + bi for x, wi, bi in zip((q, k, v), w, b, strict=True))
    if "bias_k" in p:
        k, v = (np.concatenate([x, np.repeat(p[n], x.shape[1], 1)]) for x, n in ((k, "bias_k"), (v, "bias_v")))
    if module.add_zero_attn:
        k, v = (np.concatenate([x, np.zeros_like(x[:1])]) for x in (k, v))
    split = lambda x: x.reshape(*x.shape[:2], HEADS, E // HEADS).transpose(1, 2, 0, 3)  # noqa: E731
    q, k, v = split(q), split(k), split(v)
    scores = q @ k.swapaxes(-2, -1) / math.sqrt(E // HEADS)
    masked = np.zeros(scores.shape)
    masked[..., : np.shape(mask)[-1] if np.ndim(mask) else None] += mask
    weights = softmax(scores + masked)
    out = (weights @ v).transpose(2, 0, 1, 3).reshape(q.shape[2], -1, E)
    return out @ p["out_proj.weight"].T + p.get("out_proj.bias", 0), weights


def new_module(**options: Any) -> nn.MultiheadAttention:
    """Return a module in float64 whose biases are not 0."""
    cd.manual_seed(5)
    module = nn.MultiheadAttention(E, HEADS, dtype=cd.float64, **options)
    for name, parameter in module.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"kdim": 5, "vdim": 3}, {"add_bias_kv": True, "add_zero_attn": True}, {"batch_first": True}],
)
def test_heads_attend_to_projections(options: dict[str, Any]) -> None:
    """The result and the mean of the weights agree with the formula, with the weights needed and without."""
    module = new_module(**options)
    q, k, v = (
        normal(L, N, E),
        normal(S, N, options.get("kdim", E), seed=1),
        normal(S, N, options.get("vdim", E), seed=2),
    )
    out, weights = attended(module, q, k, v)
    swap = (lambda x: x.swapaxes(0, 1)) if module.batch_first else (lambda x: x)
    found, average = module(*[tensor(swap(x)) for x in (q, k, v)])
    np.testing.assert_allclose(array(found.detach()), swap(out), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(average.detach()), weights.mean(1), rtol=1e-10, atol=1e-12)
    found, none = module(*[tensor(swap(x)) for x in (q, k, v)], need_weights=False)
    assert none is None
    np.testing.assert_allclose(array(found.detach()), swap(out), rtol=1e-10, atol=1e-12)
    alone, each = module(*[tensor(x[:, 0]) for x in (q, k, v)], average_attn_weights=False)
    np.testing.assert_allclose(array(alone.detach()), out[:, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array(each.detach()), weights[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_masks_are_added_to_the_scores(options: dict[str, Any], need_weights: bool) -> None:
    """True in a bool mask excludes a key, numbers are added, and no mask excludes added keys."""
    module, x = new_module(**options), normal(L, N, E)
    padding = np.array([[False, False, False, True], [False, True, False, False]])
    apart = normal(N * HEADS, L, L, seed=4)
    by_key = np.where(padding, -np.inf, 0.0)[:, None, None]
    for masks, added in (
        ({"attn_mask": CAUSAL}, np.where(CAUSAL, -np.inf, 0.0)),
        ({"attn_mask": CAUSAL, "is_causal": True}, np.where(CAUSAL, -np.inf, 0.0)),
        ({"key_padding_mask": padding}, by_key),
        ({"key_padding_mask": padding, "attn_mask": CAUSAL}, by_key + np.where(CAUSAL, -np.inf, 0.0)),
        ({"key_padding_mask": np.where(padding, -1.5, 0.0), "attn_mask": apart},
         np.where(padding, -1.5, 0.0)[:, None, None] + apart.reshape(N, HEADS, L, L)),
    ):  # fmt: skip
        if options and "is_causal" in masks:
            continue  # The hint says that the mask is causal over all keys; PyTorch then excludes the added ones.
        arguments = {name: cd.tensor(m) if name != "is_causal" else m for name, m in masks.items()}
        found, _ = module(*[tensor(x)] * 3, need_weights=need_weights, **arguments)
        np.testing.assert_allclose(array(found.detach()), attended(module, x, x, x, added)[0], rtol=1e-10, atol=1e-12)


def test_a_query_without_keys_is_nan_only_if_weights_are_needed() -> None:
    """Both are PyTorch's results: softmax of a row of -inf is NaN, and attention without weights gives 0."""
    module, x = new_module(), tensor(normal(L, N, E))
    mask = cd.zeros(L, L, dtype=cd.bool)
    mask[1] = True
    found, weights = module(x, x, x, attn_mask=mask)
    assert bool(found[1].isnan().all())
    assert bool(weights[:, 1].isnan().all())
    found, _ = module(x, x, x, attn_mask=mask, need_weights=False)
    assert module.out_proj.bias is not None
    np.testing.assert_allclose(array(found[1, 0].detach()), array(module.out_proj.bias.detach()), rtol=1e-12)


def test_static_keys_and_values_replace_the_projections() -> None:
    """Keys and values of each head can be passed; they are not projected."""
    module, x = new_module(), normal(L, N, E)
    k, v = normal(N * HEADS, S, 2, seed=7), normal(N * HEADS, S, 2, seed=8)
    arguments = (E, HEADS, module.in_proj_weight, module.in_proj_bias, None, None, False, 0.0, module.out_proj.weight,
                 None)  # fmt: skip
    q = tensor(x)
    _, weights = F.multi_head_attention_forward(q, q, q, *arguments, static_k=tensor(k), static_v=tensor(v))
    assert weights is not None
    assert module.in_proj_weight is not None
    assert module.in_proj_bias is not None
    projected = x @ array(module.in_proj_weight.detach())[:E].T + array(module.in_proj_bias.detach())[:E]
    heads = projected.reshape(L, N * HEADS, 2).swapaxes(0, 1)
    want = softmax(heads @ k.swapaxes(1, 2) / math.sqrt(2)).reshape(N, HEADS, L, S).mean(1)
    np.testing.assert_allclose(array(weights.detach()), want, rtol=1e-10)


def test_dropout_acts_on_the_weights_in_training_only() -> None:
    """With p = 1, the result in training is the bias of the last projection."""
    module, x = new_module(dropout=1.0), tensor(normal(L, N, E))
    assert module.out_proj.bias is not None
    for need_weights in (True, False):
        found, _ = module.train()(x, x, x, need_weights=need_weights)
        want = np.broadcast_to(array(module.out_proj.bias.detach()), (L, N, E))
        np.testing.assert_allclose(array(found.detach()), want, rtol=1e-12)
        found, _ = module.eval()(x, x, x, need_weights=need_weights)
        np.testing.assert_allclose(array(found.detach()), attended(module, *[array(x)] * 3)[0], rtol=1e-10, atol=1e-12)


def test_derivatives() -> None:
    """First and second derivatives by the inputs agree with finite differences, also of transposed inputs."""
    module = nn.MultiheadAttention(2, 1, add_bias_kv=True, batch_first=True, dtype=cd.float64)
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    x, memory = tensor(normal(2, 2, 1)).transpose(0, 2), tensor(normal(1, 3, 2))
    inputs = [x.requires_grad_(), memory.requires_grad_()]
    for need in (True, False):
        assert gradcheck(lambda q, m, need=need: module(q, m, m, need_weights=need)[0], inputs)
        assert gradgradcheck(lambda q, m, need=need: module(q, m, m, need_weights=need)[0], inputs)


def test_parameters_and_initial_values() -> None:
    """Weights are drawn within Xavier's bound, biases are 0, and the printed form and the keys are PyTorch's."""
    cd.manual_seed(0)
    module = nn.MultiheadAttention(8, 2, add_bias_kv=True)
    assert list(module.state_dict()) == [
        "in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight", "out_proj.bias",
    ]  # fmt: skip
    assert module.in_proj_weight is not None
    bound = math.sqrt(6 / (8 + 24))
    assert 0.8 * bound < module.in_proj_weight.abs().max().item() <= bound
    assert not module.in_proj_bias.any()
    assert not module.out_proj.bias.any()
    last = "NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)"
    assert repr(module) == f"MultiheadAttention(\n  (out_proj): {last}\n)"
    separate = nn.MultiheadAttention(8, 2, bias=False, kdim=3)
    assert list(separate.state_dict()) == ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]
    assert separate.k_proj_weight.shape == (8, 3)
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention


def test_merge_masks() -> None:
    """A mask of keys is kind 1, a mask of scores or both kind 2, no mask None."""
    module, x = new_module(batch_first=True), cd.zeros(N, L, E)
    padding, scores = cd.tensor([[0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]), cd.ones(L, L)
    assert module.merge_masks(None, None, x) == (None, None)
    assert module.merge_masks(None, padding, x) == (padding, 1)
    merged, kind = module.merge_masks(scores, None, x)
    assert merged is not None
    assert kind == 2
    assert merged.shape == (N, HEADS, L, L)
    merged, kind = module.merge_masks(cd.ones(N * HEADS, L, L), padding, x)
    assert merged is not None
    assert kind == 2
    assert merged[1, 2, 3].tolist() == [3.0, 1.0, 1.0, 1.0]


def test_masks_of_different_dtypes_warn() -> None:
    """The bool mask is used; PyTorch has deprecated the combination."""
    module, x = new_module(), tensor(normal(L, N, E))
    with pytest.warns(UserWarning, match="Support for mismatched key_padding_mask and attn_mask is deprecated"):
        module(x, x, x, key_padding_mask=cd.zeros(N, L, dtype=cd.bool), attn_mask=cd.zeros(L, L, dtype=cd.float64))


X = cd.zeros(L, N, E, dtype=cd.float64)
CALLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"query": X[0, 0]}, AssertionError, "query should be unbatched 2D or batched 3D tensor but received 1-D query"),
    ({"key": X[0]}, AssertionError, r"For batched \(3-D\) `query`, expected `key` and `value` to be 3-D but found 2-D"),
    ({"key_padding_mask": cd.zeros(3)}, AssertionError, "`key_padding_mask` to be `None` or 2-D but found 1-D tensor"),
    ({"attn_mask": cd.zeros(3)}, AssertionError, "`attn_mask` to be `None`, 2-D or 3-D but found 1-D tensor instead"),
    ({"attn_mask": cd.zeros(2, 3)}, RuntimeError, r"shape of the 2D attn_mask is .*\[2, 3\].*, but should be \(4, 4\)"),
    ({"attn_mask": cd.zeros(2, 4, 4)}, RuntimeError, r"The shape of the 3D attn_mask is .* but should be \(6, 4, 4\)"),
    ({"attn_mask": cd.zeros(4, 4, dtype=cd.int64)}, AssertionError, "only bool and floating types of attn_mask are"),
    ({"key_padding_mask": cd.zeros(1, 4)}, AssertionError, r"Expected key_padded_mask\.shape\[0\] to be 2, but got 1"),
    ({"key_padding_mask": cd.zeros(2, 3)}, AssertionError, r"Expected key_padded_mask\.shape\[1\] to be 4, but got 3"),
    ({"is_causal": True}, RuntimeError, "Need attn_mask if specifying the is_causal hint"),
    ({"query": X[..., :3]}, AssertionError, "was expecting embedding dimension of 6, but got 3"),
    ({"value": X[:2]}, AssertionError, "key shape .* does not match value shape"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "error", "text"), CALLS, ids=[str(n) for n in range(len(CALLS))])
def test_the_module_names_arguments_that_do_not_match(change: Any, error: type[Exception], text: str) -> None:
    """Dims, masks and widths that do not match raise PyTorch's errors."""
    with pytest.raises(error, match=text):
        new_module()(**{"query": X, "key": X, "value": X, **change})


def forward(**change: Any) -> Any:
    """Call the function with a change to valid arguments."""
    arguments: dict[str, Any] = {
        "query": X, "key": X, "value": X, "embed_dim_to_check": E, "num_heads": HEADS, "in_proj_weight": cd.zeros(
            3 * E, E, dtype=cd.float64), "in_proj_bias": None, "bias_k": None, "bias_v": None, "add_zero_attn": False,
        "dropout_p": 0.0, "out_proj_weight": cd.zeros(E, E, dtype=cd.float64), "out_proj_bias": None,
    }  # fmt: skip
    return F.multi_head_attention_forward(**{**arguments, **change})


BIAS, STATIC = cd.zeros(1, 1, E, dtype=cd.float64), cd.zeros(6, 5, 2, dtype=cd.float64)
WEIGHT = cd.zeros(E, E, dtype=cd.float64)
FORWARD: list[tuple[dict[str, Any], str]] = [
    ({"num_heads": 4}, "embed_dim 6 not divisible by num_heads 4"),
    ({"in_proj_weight": None}, "use_separate_proj_weight is False but in_proj_weight is None"),
    ({"use_separate_proj_weight": True}, "use_separate_proj_weight is True but q_proj_weight is None"),
    ({"use_separate_proj_weight": True, "q_proj_weight": WEIGHT}, "True but k_proj_weight is None"),
    ({"use_separate_proj_weight": True, "q_proj_weight": WEIGHT, "k_proj_weight": WEIGHT}, "v_proj_weight is None"),
    ({"use_separate_proj_weight": True, "value": X[:2]}, "key's sequence and batch dims .* do not match value's"),
    ({"bias_k": BIAS}, "bias_k is set but bias_v is None"),
    ({"bias_v": BIAS}, "bias_v is set but bias_k is None"),
    ({"bias_k": BIAS, "bias_v": BIAS, "static_k": STATIC}, r"bias cannot be added to static key\."),
    ({"bias_k": BIAS, "bias_v": BIAS, "static_v": STATIC}, r"bias cannot be added to static value\."),
    ({"static_k": STATIC[:4]}, r"expecting static_k\.size\(0\) of 6, but got 4"),
    ({"static_v": STATIC[..., :1]}, r"expecting static_v\.size\(2\) of 2, but got 1"),
    ({"query": X[:, 0], "key": X[:, 0], "value": X[:, 0], "attn_mask": cd.zeros(2, 4, 4)},
     r"Expected `attn_mask` shape to be \(3, 4, 4\) but got"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), FORWARD, ids=[str(n) for n in range(len(FORWARD))])
def test_the_function_names_arguments_that_do_not_match(change: dict[str, Any], text: str) -> None:
    """Missing weights, single biases and static keys of another shape raise PyTorch's errors."""
    with pytest.raises(AssertionError, match=text):
        forward(**change)


def test_the_constructor_checks_sizes() -> None:
    """Sizes are positive, and the heads divide the width."""
    with pytest.raises(ValueError, match="embed_dim and num_heads must be greater than 0, got embed_dim=0 and"):
        nn.MultiheadAttention(0, 1)
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(6, 4)


def test_empty_batches() -> None:
    """A batch of no sequences gives no results."""
    x = cd.zeros(L, 0, E, dtype=cd.float64)
    out, weights = new_module()(x, x, x)
    assert out.shape == (L, 0, E)
    assert weights.shape == (0, L, L)
