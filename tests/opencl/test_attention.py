"""Attention on an OpenCL device: causal and other masks, heads in groups; for processors and for GPUs."""

from math import prod
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import numpy as np
import pytest
from candelabra_clike.kernels import attention

pytestmark = pytest.mark.rounding

FORMS = ("device", "lanes")


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> cd.device:
    """Return the device with its own forms of kernels, and with those for GPUs."""
    device: cd.device = request.getfixturevalue(request.param)
    return device


def values(seed: int, *shape: int) -> Any:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def result_and_gradients(where: Any, d: Any, inputs: Any, weights: Any, **options: Any) -> list[Any]:
    """Return the result and the gradients on the host."""
    leaves = [cd.tensor(x).to(where, d).requires_grad_() for x in inputs]
    options = {k: v.to(where) if isinstance(v, cd.Tensor) else v for k, v in options.items()}
    if (mask := options.get("attn_mask")) is not None and mask.dtype is not cd.bool:
        options["attn_mask"] = mask.to(d)
    found = F.scaled_dot_product_attention(*leaves, **options)
    (found * cd.tensor(weights).to(where, d)).sum().backward()
    return [t.detach().numpy(force=True) for t in (found, *[leaf.grad for leaf in leaves])]


def close(form: cd.device, inputs: Any, **options: Any) -> None:
    """Compare with the reference in float64."""
    weights = values(9, *np.broadcast_shapes(*[x.shape[:-2] for x in inputs]), inputs[0].shape[-2], inputs[2].shape[-1])
    got = result_and_gradients(form, cd.float32, inputs, weights, **options)
    want = result_and_gradients(None, cd.float64, inputs, weights, **options)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


HEADS = values(1, 2, 3, 37, 24), values(2, 2, 3, 37, 24), values(3, 2, 3, 37, 16)
MASK = np.where(values(4, 37, 37) > 0.5, -np.inf, values(5, 37, 37)).astype("f4")
MASK[5] = -np.inf
OPTIONS: list[dict[str, Any]] = [
    {}, {"is_causal": True}, {"attn_mask": cd.tensor(MASK)}, {"attn_mask": cd.tensor(MASK > 0), "scale": -0.3},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "past", "added", "bool"])
def test_attention_and_its_gradients(form: cd.device, options: dict[str, Any]) -> None:
    """There are heads of two images, and a mask that excludes every key of one query."""
    close(form, HEADS, **options)


def test_keys_for_all_heads_and_other_lengths(form: cd.device) -> None:
    """Three heads share one set of keys and values, whose gradients are sums."""
    close(form, (values(1, 3, 70, 5), values(2, 1, 9, 5), values(3, 9, 2)), is_causal=True)


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "past", "added", "bool"])
@pytest.mark.parametrize("most", [1, 800, 3000])
def test_heads_and_queries_are_computed_in_groups(
    device: cd.device, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], most: int
) -> None:
    """Single queries, ranges of queries and some heads: memory is bounded, and the sums are equal."""
    monkeypatch.setattr(attention, "MAX_SCORES", most)
    close(device, [x[:, :2, :11] for x in HEADS] if most == 1 else HEADS, **shortened(options, most))


@pytest.mark.parametrize("keys", [9, 37, 70])
def test_hidden_scores_are_skipped(lanes: cd.device, monkeypatch: pytest.MonkeyPatch, keys: int) -> None:
    """Queries with a causal mask are split on GPUs, and each part attends to the keys before its end."""
    scores: list[int] = []
    weights = attention.AttentionCall.weights

    def counted(x: attention.AttentionCall, multiply: attention.Multiply, shape: attention.Shape) -> Any:
        if not x.query.engine.traits.serial:
            scores.append(prod(shape))
        return weights(x, multiply, shape)

    monkeypatch.setattr(attention, "CAUSAL_QUERIES", 10)
    monkeypatch.setattr(attention.AttentionCall, "weights", counted)
    close(lanes, (HEADS[0], values(2, 2, 3, keys, 24), values(3, 2, 3, keys, 16)), is_causal=True)
    assert len(scores) > 2
    assert sum(scores) <= 2 * 6 * 37 * keys * (0.8 if keys > 9 else 1)  # of the result and of the gradients


def test_results_have_the_layout_of_the_heads(form: cd.device) -> None:
    """Heads that are views of vectors give an output and gradients that are such views, so that none is copied."""
    whole = cd.tensor(values(1, 2, 37, 3, 24)).to(form).requires_grad_()
    found = F.scaled_dot_product_attention(*[whole.transpose(1, 2)] * 3, is_causal=True)
    assert found.transpose(1, 2).is_contiguous()
    host = whole.detach().cpu().double().requires_grad_()
    want = F.scaled_dot_product_attention(*[host.transpose(1, 2)] * 3, is_causal=True)
    for x in (found, want):
        x.square().sum().backward()
    np.testing.assert_allclose(found.numpy(force=True), want.numpy(force=True), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(whole.grad.numpy(force=True), host.grad.numpy(force=True), rtol=1e-4, atol=1e-4)


def shortened(options: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the options of a case with fewer queries, if it has them."""
    return {k: v[:11, :11] if isinstance(v, cd.Tensor) and most == 1 else v for k, v in options.items()}


def test_scores_are_never_all_in_memory(device: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest array that a product writes has the maximum number of elements. On processors, calls without a mask
    make no products.
    """
    monkeypatch.setattr(attention, "MAX_SCORES", 500)
    sizes: list[int] = []

    def counted(out: Any, a: Any, b: Any, added: bool) -> None:
        sizes.append(out.size)
        attention.multiply(out, a, b, added)

    kernel = attention.kernels(lambda d: counted)["attention"]
    payloads = [cd.tensor(x).to(device)._payload for x in (*HEADS, np.zeros((37, HEADS[1].shape[-2]), "f4"))]
    found = kernel(*payloads, True, 0.2)
    assert found.shape == (2, 3, 37, 16)
    assert max(sizes) <= 500
    assert sum(sizes) > 6 * 37 * 37


def test_a_mask_combined_with_a_causal_mask(device: cd.device) -> None:
    """The operator accepts both, although the function refuses them."""
    from candelabra.nn._operators.attention import attention as operator

    inputs = [cd.tensor(x) for x in HEADS]
    mask = cd.tensor(MASK)
    want = operator(*[x.double() for x in inputs], mask.double(), True, 0.2)
    got = operator(*[x.to(device) for x in inputs], mask.to(device), True, 0.2)
    np.testing.assert_allclose(got.numpy(force=True), want.numpy(), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("d", [cd.float16, cd.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("most", [1 << 26, 700])
def test_scores_of_halves_are_float32(
    device: cd.device, monkeypatch: pytest.MonkeyPatch, d: cd.dtype, most: int
) -> None:
    """Inputs, weights, gradients and results are rounded; gradients of keys are accumulated in the dtype."""
    monkeypatch.setattr(attention, "MAX_SCORES", most)
    near = 2e-3 if d is cd.float16 else 1.6e-2
    inputs = [cd.tensor(x[0]).to(d).double().numpy() for x in HEADS]
    weights = cd.tensor(values(9, 3, 37, 16)).to(d).double().numpy()
    mask = cd.tensor(MASK).to(d).double()
    got = result_and_gradients(device, d, inputs, weights, attn_mask=mask)
    want = result_and_gradients(None, cd.float64, inputs, weights, attn_mask=mask)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.astype("f8"), w, rtol=near, atol=near * np.abs(w).max())


REFUSALS = [
    (((4, 3), (5, 2), (5, 2)), None, r"attention: shapes .* do not fit"),
    (((4, 3), (5, 3), (4, 2)), None, r"attention: shapes .* do not fit"),
    (((3,), (5, 3), (5, 2)), None, r"attention: shapes .* do not fit"),
    (((4, 3), (5, 3), (5, 2)), (2, 4, 5), r"attention: a mask of shape .* does not fit scores of"),
]


@pytest.mark.parametrize(("shapes", "mask", "text"), REFUSALS)
def test_shapes_that_do_not_fit_are_refused(device: cd.device, shapes: Any, mask: Any, text: str) -> None:
    """The error is raised before any allocation."""
    payloads = [cd.zeros(s, device=device)._payload for s in shapes]
    added = None if mask is None else cd.zeros(mask, device=device)._payload
    with pytest.raises(RuntimeError, match=text):
        attention.KERNELS["attention"](*payloads, added, False, 1.0)


def test_a_gradient_of_another_shape_is_refused(device: cd.device) -> None:
    """A gradient that would broadcast is refused too."""
    payloads = [cd.zeros(s, device=device)._payload for s in ((1, 2), (4, 3), (5, 3), (5, 2))]
    with pytest.raises(RuntimeError, match=r"attention_backward: a gradient of shape .* does not fit"):
        attention.KERNELS["attention_backward"](*payloads, None, False, 1.0)
