"""The Transformer and its layers: values by the formula in NumPy, masks, copies, errors."""

from __future__ import annotations

import copy
import importlib
import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, normal, tensor

SIZES: dict[str, Any] = {"d_model": 4, "nhead": 2, "dim_feedforward": 5, "dropout": 0.0, "dtype": cd.float64}


WITHOUT_NESTED = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
"""As in PyTorch, a Transformer with (sequence, batch, width) warns that its encoder uses no nested tensors."""


def norm(module: nn.LayerNorm, x: np.ndarray) -> np.ndarray:
    """Return layer normalization by its formula."""
    centred = x - x.mean(-1, keepdims=True)
    out = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + module.eps)
    return out * array(module.weight.detach()) + (0 if module.bias is None else array(module.bias.detach()))


def feed(layer: Any, x: np.ndarray, activation: Any) -> np.ndarray:
    """Return the two linear maps."""
    hidden = layer.linear1(tensor(x))
    return array(layer.linear2(tensor(activation(array(hidden.detach())))).detach())


def attention(module: Any, x: np.ndarray, memory: np.ndarray, **masks: Any) -> np.ndarray:
    """Return attention of the module, which has its own tests."""
    return array(module(tensor(x), tensor(memory), tensor(memory), **masks)[0].detach())


def encoded(layer: Any, x: np.ndarray, activation: Any, **masks: Any) -> np.ndarray:
    """Return an encoder layer by its formula."""
    if layer.norm_first:
        first = norm(layer.norm1, x)
        x = x + attention(layer.self_attn, first, first, **masks)
        return x + feed(layer, norm(layer.norm2, x), activation)
    x = norm(layer.norm1, x + attention(layer.self_attn, x, x, **masks))
    return norm(layer.norm2, x + feed(layer, x, activation))


def decoded(layer: Any, x: np.ndarray, memory: np.ndarray, **masks: Any) -> np.ndarray:
    """Return a decoder layer by its formula."""
    if layer.norm_first:
        first = norm(layer.norm1, x)
        x = x + attention(layer.self_attn, first, first, **masks)
        x = x + attention(layer.multihead_attn, norm(layer.norm2, x), memory)
        return x + feed(layer, norm(layer.norm3, x), relu)
    x = norm(layer.norm1, x + attention(layer.self_attn, x, x, **masks))
    x = norm(layer.norm2, x + attention(layer.multihead_attn, x, memory))
    return norm(layer.norm3, x + feed(layer, x, relu))


def relu(x: np.ndarray) -> np.ndarray:
    """Return the positive parts."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x · Phi(x)."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(("activation", "formula"), [("relu", relu), ("gelu", gelu), (cd.tanh, np.tanh)])
def test_an_encoder_layer(norm_first: bool, activation: Any, formula: Any) -> None:
    """The result agrees with the formula, with norms before or after; an activation is a name or a function."""
    layer = nn.TransformerEncoderLayer(**SIZES, activation=activation, norm_first=norm_first, batch_first=True)
    x = normal(2, 3, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=cd.float64)
    found = layer(tensor(x), mask, is_causal=True)
    np.testing.assert_allclose(array(found.detach()), encoded(layer, x, formula, attn_mask=mask), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_layer(norm_first: bool) -> None:
    """The layer attends to its own sequence, with a mask, and to a memory of another length."""
    layer = nn.TransformerDecoderLayer(**SIZES, norm_first=norm_first)
    x, memory = normal(3, 2, 4), normal(5, 2, 4, seed=1)
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=cd.float64)
    found = layer(tensor(x), tensor(memory), mask)
    want = decoded(layer, x, memory, attn_mask=mask)
    np.testing.assert_allclose(array(found.detach()), want, rtol=1e-9, atol=1e-12)


@WITHOUT_NESTED
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_transformer_encodes_and_decodes(batch_first: bool) -> None:
    """The decoder attends to the normalized result of the encoder, through all layers."""
    model = nn.Transformer(
        **SIZES, num_encoder_layers=2, num_decoder_layers=1, batch_first=batch_first, activation=F.relu
    )
    swap = (lambda x: x.swapaxes(0, 1)) if batch_first else (lambda x: x)
    source, target = swap(normal(5, 2, 4)), swap(normal(3, 2, 4, seed=1))
    memory = source
    for layer in model.encoder.layers:
        memory = encoded(layer, memory, relu)
    memory = norm(model.encoder.norm, memory)
    mask = model.generate_square_subsequent_mask(3, dtype=cd.float64)
    want = norm(model.decoder.norm, decoded(model.decoder.layers[0], target, memory, attn_mask=mask))
    found = model(tensor(source), tensor(target), tgt_mask=mask)
    np.testing.assert_allclose(array(found.detach()), want, rtol=1e-9, atol=1e-12)
    assert mask.tolist() == [[0.0, -math.inf, -math.inf], [0.0, 0.0, -math.inf], [0.0, 0.0, 0.0]]


def test_copies_of_a_layer_are_independent() -> None:
    """The layers have equal initial parameters, which are not shared, and print as one."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SIZES, batch_first=True), 2)
    first, second = encoder.layers
    assert first.linear1.weight.tolist() == second.linear1.weight.tolist()
    assert first.linear1.weight is not second.linear1.weight
    assert repr(encoder).startswith(
        "TransformerEncoder(\n  (layers): ModuleList(\n    (0-1): 2 x TransformerEncoderLayer(\n      (self_attn)"
    )
    keys = [key for key in encoder.state_dict() if key.startswith("layers.1.")]
    assert keys == [f"layers.1.{name}" for name in (
        "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias",
        "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight", "norm1.bias",
        "norm2.weight", "norm2.bias",
    )]  # fmt: skip
    assert all(p.ndim > 1 for p in nn.TransformerDecoderLayer(4, 2, 5, bias=False).state_dict().values()
               if p.shape != (4,))  # fmt: skip


def test_a_causal_mask_is_recognised_by_its_values() -> None:
    """Without a hint, a causal mask has the effect of the hint, and another mask or another shape does not."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SIZES, batch_first=True), 1).eval()
    x = normal(2, 3, 4)
    causal = nn.Transformer.generate_square_subsequent_mask(3, dtype=cd.float64)
    other = causal.clone()
    other[0, 1] = 0.0
    for mask in (causal, other, causal.expand(4, 3, 3)):
        found = encoder(tensor(x), mask)
        want = encoded(encoder.layers[0], x, relu, attn_mask=mask)
        np.testing.assert_allclose(array(found.detach()), want, rtol=1e-9, atol=1e-12)


def test_evaluation_without_gradients_leaves_out_padding_at_the_end() -> None:
    """The output of padding is 0 before the norm, as PyTorch's nested tensors give; other positions do not change."""
    layer = nn.TransformerEncoderLayer(**SIZES, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, end, start = tensor(normal(2, 3, 4)), [[0, 0, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]
    padding = cd.tensor(end, dtype=cd.bool)
    whole = encoder(x, src_key_padding_mask=padding)
    assert whole[0, 2].any()
    with cd.no_grad():
        without = encoder(x, src_key_padding_mask=padding)
        assert not without[0, 2].any()
        assert encoder(x, src_key_padding_mask=cd.tensor(start, dtype=cd.bool))[0, 0].any()
        plain = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
        assert plain(x, src_key_padding_mask=padding)[0, 2].any()
        normed = nn.TransformerEncoder(layer, 1, nn.LayerNorm(4, dtype=cd.float64)).eval()
        assert not normed(x, src_key_padding_mask=padding)[0, 2].any()
        assert encoder.train()(x, src_key_padding_mask=padding)[0, 2].any()
    np.testing.assert_allclose(array(without[1]), array(whole[1].detach()), rtol=1e-12)
    np.testing.assert_allclose(array(without[0, :2]), array(whole[0, :2].detach()), rtol=1e-12)


NESTED: list[tuple[dict[str, Any], str]] = [
    ({"norm_first": True}, "encoder_layer.norm_first was True"),
    ({"batch_first": False}, r"encoder_layer\.self_attn\.batch_first was not True\(use batch_first for better"),
    ({"bias": False}, r"encoder_layer\.self_attn was passed bias=False"),
    ({"activation": cd.tanh}, "encoder_layer.activation_relu_or_gelu was not True"),
    ({"nhead": 1}, "encoder_layer.self_attn.num_heads is odd"),
]


@pytest.mark.parametrize(("change", "text"), NESTED, ids=[str(n) for n in range(len(NESTED))])
def test_a_layer_without_nested_tensors_warns(change: dict[str, Any], text: str) -> None:
    """The warning says why, as in PyTorch; nothing is warned about with ``enable_nested_tensor=False``."""
    layer = nn.TransformerEncoderLayer(**{**SIZES, "batch_first": True, **change})
    with pytest.warns(UserWarning, match=f"self.use_nested_tensor is False because {text}"):
        assert not nn.TransformerEncoder(layer, 1).use_nested_tensor
    nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def test_other_modules_can_be_layers_and_encoders() -> None:
    """A layer of another class warns; a custom encoder replaces the encoder."""
    with pytest.warns(UserWarning, match="because encoder_layer was not TransformerEncoderLayer"):
        nn.TransformerEncoder(nn.Linear(2, 2), 1)

    class Doubled(nn.Module):
        def forward(self, src: Any, **masks: Any) -> Any:
            return src * 2

    model = nn.Transformer(**SIZES, custom_encoder=Doubled(), num_decoder_layers=1)
    x, y = tensor(normal(3, 2, 4)), tensor(normal(2, 2, 4))
    np.testing.assert_allclose(array(model(x, y).detach()), array(model.decoder(y, x * 2).detach()))


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "softmax", "elu", "cross_entropy"])
def test_activations_are_found_by_module_and_name(name: str) -> None:
    """Pickle, which stores a layer's activation by its module and name, finds the same function."""
    function = getattr(F, name)
    assert getattr(importlib.import_module(function.__module__), function.__qualname__) is function
    again = copy.deepcopy(nn.TransformerEncoderLayer(**SIZES, activation=function))
    assert again.activation is function


@WITHOUT_NESTED
def test_mistakes() -> None:
    """Unknown activations, batches and widths that do not match raise PyTorch's errors."""
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        nn.TransformerEncoderLayer(4, 2, activation="tanh")
    for batch_first in (False, True):
        model = nn.Transformer(**SIZES, num_encoder_layers=1, num_decoder_layers=1, batch_first=batch_first)
        x = cd.zeros(3, 3, 4, dtype=cd.float64)
        with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
            model(x, x[:, :2] if not batch_first else x[:2])
        with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model"):
            model(x, x[..., :2])
