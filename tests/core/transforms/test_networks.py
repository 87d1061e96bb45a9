"""``vmap`` of the operators of networks: convolutions, pooling, norms, attention, losses, per-example gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, func, vmap
from candelabra.func import grad
from candelabra.nn import functional as F


def tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    """Return float64 numbers."""
    return cd.tensor(rng.standard_normal(shape))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), ((2, 4, 6), (6, 4, 3))),
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2), ((2, 4, 6, 5), (6, 4, 3, 2))),
    "conv2d without a batch": (lambda x, w: F.conv2d(x, w), ((4, 6, 5), (6, 4, 3, 2))),
    "conv2d in groups": (lambda x, w: F.conv2d(x, w, groups=2), ((2, 4, 6, 5), (6, 2, 3, 2))),
    "conv2d with a bias": (lambda x, w, b: F.conv2d(x, w, b), ((2, 4, 6, 5), (6, 4, 3, 2), (6,))),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), ((2, 4, 3, 3), (4, 6, 2, 2))),
    "conv_transpose2d in groups": (lambda x, w: F.conv_transpose2d(x, w, groups=2), ((2, 4, 3, 3), (4, 3, 2, 2))),
    "max_pool2d": (lambda x, y: F.max_pool2d(x * y, 2), ((2, 4, 6, 4), (4, 1, 1))),
    "avg_pool2d": (lambda x, y: F.avg_pool2d(x * y, 2), ((2, 4, 6, 4), (4, 1, 1))),
    "adaptive_avg_pool2d": (lambda x, y: F.adaptive_avg_pool2d(x * y, 3), ((2, 4, 6, 4), (4, 1, 1))),
    "adaptive_max_pool1d": (lambda x, y: F.adaptive_max_pool1d(x * y, 3), ((2, 4, 6), (4, 1))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((5, 4, 2), (4,), (4,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), ((5, 4, 2), (4,), (4,))),
    "instance_norm": (lambda x, w: F.instance_norm(x * w), ((5, 4, 3), (4, 1))),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), ((3, 4), (4,))),
    "linear": (lambda x, w, b: F.linear(x, w, b), ((3, 4), (5, 4), (5,))),
    "bilinear": (lambda x, y, w: F.bilinear(x, y, w), ((3, 4), (3, 2), (5, 4, 2))),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), ((2, 3, 4), (5, 4), (5, 3))),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), ((2, 3, 4), (2, 3, 4), (2, 3, 3))
    ),
    "attention with a mask": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m), ((2, 3, 4), (2, 5, 4), (3, 5))
    ),
    "mse_loss": (F.mse_loss, ((3, 4), (3, 4))),
    "smooth_l1_loss": (F.smooth_l1_loss, ((3, 4), (3, 4))),
    "kl_div": (lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), ((3, 4), (3, 4))),
    "cosine_similarity": (F.cosine_similarity, ((3, 4), (3, 4))),
    "pad by reflection": (lambda x, y: F.pad(x * y, (1, 2), mode="reflect"), ((2, 3, 4), (4,))),
    "interpolate": (lambda x, y: F.interpolate(x * y, scale_factor=2, mode="bilinear"), ((2, 3, 4, 4), (4,))),
    "unfold and fold": (lambda x, y: F.fold(F.unfold(x * y, 2), (4, 4), 2), ((2, 3, 4, 4), (4,))),
    "pixel_shuffle": (lambda x, y: F.pixel_shuffle(x * y, 2), ((2, 4, 3, 3), (3,))),
    "grid_sample": (
        lambda x, y: F.grid_sample(x, y.tanh(), align_corners=False), ((2, 3, 4, 4), (2, 3, 3, 2))
    ),
    "gru": (lambda x, h: _gru()(x, h)[0], ((5, 2, 3), (1, 2, 4))),
    "lstm": (lambda x, h: _lstm()(x, (h, h))[0], ((5, 2, 3), (1, 2, 4))),
    "multi-head attention": (lambda x, y: _heads()(x, y, y)[0], ((3, 2, 4), (5, 2, 4))),
}  # fmt: skip


def _seeded(make: Callable[[], Any]) -> Any:
    state = cd.get_rng_state()
    cd.manual_seed(0)
    module = make()
    cd.set_rng_state(state)
    return module.double()


@cache
def _gru() -> Any:
    return _seeded(lambda: cd.nn.GRU(3, 4))


@cache
def _lstm() -> Any:
    return _seeded(lambda: cd.nn.LSTM(3, 4))


@cache
def _heads() -> Any:
    return _seeded(lambda: cd.nn.MultiheadAttention(4, 2))


def dims_for(count: int) -> list[tuple[int | None, ...]]:
    """Return: all batched, only the first, only the last."""
    return [(0,) * count, (0, *[None] * (count - 1)), (*[None] * (count - 1), 0)]


@pytest.mark.parametrize("choice", [0, 1, 2], ids=["all", "first", "last"])
@pytest.mark.parametrize("name", CASES)
def test_networks(name: str, choice: int, rng: np.random.Generator) -> None:
    """The results, and the gradients that vmap(grad) and grad(vmap) compute, are those of a loop."""
    f, shapes = CASES[name]
    for module in (_gru, _lstm, _heads):
        module()  # outside of vmap, under which drawing the weights is an error
    dims = dims_for(len(shapes))[choice]
    args = [tensor(rng, *(shape if d is None else (3, *shape))) for shape, d in zip(shapes, dims, strict=True)]
    examples = [[a if d is None else a[i] for a, d in zip(args, dims, strict=True)] for i in range(3)]
    found = vmap(f, dims)(*args)
    assert cd.allclose(found, cd.stack([f(*example) for example in examples]), rtol=1e-9, atol=1e-11)

    weights = tensor(rng, *found.shape[1:])

    def loss(*values: Tensor) -> Tensor:
        return (f(*values) * weights).sum()

    places = tuple(range(len(args)))
    wanted = [grad(loss, places)(*example) for example in examples]
    per_example = vmap(grad(loss, places), dims)(*args)
    total = grad(lambda *values: vmap(loss, dims)(*values).sum(), places)(*args)
    for i, d in enumerate(dims):
        each = cd.stack([w[i] for w in wanted])
        assert cd.allclose(per_example[i], each, rtol=1e-8, atol=1e-10)
        assert cd.allclose(total[i], each.sum(0) if d is None else each, rtol=1e-8, atol=1e-10)


class Net(cd.nn.Module):
    """The network of digits: two convolutions, pooling, two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = cd.nn.Conv2d(1, 4, 3)
        self.conv2 = cd.nn.Conv2d(4, 6, 3)
        self.fc1 = cd.nn.Linear(6 * 4, 8)
        self.fc2 = cd.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x)).flatten(1)
        return self.fc2(F.relu(self.fc1(x))).log_softmax(1)


def test_per_example_gradients_of_a_convolutional_network(rng: np.random.Generator) -> None:
    """As in torch.func's tutorial: vmap(grad) with the parameters shared, in whole and in chunks."""
    net = Net().double()
    x, target = tensor(rng, 5, 1, 10, 10), cd.tensor(rng.integers(0, 3, 5))
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: dict[str, Tensor], x: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(func.functional_call(net, params, (x.unsqueeze(0),)), target.unsqueeze(0))

    whole = vmap(grad(loss), (None, 0, 0))(params, x, target)
    chunks = vmap(grad(loss), (None, 0, 0), chunk_size=2)(params, x, target)
    for i in range(5):
        net.zero_grad()
        F.nll_loss(net(x[i : i + 1]), target[i : i + 1]).backward()
        for name, p in net.named_parameters():
            assert cd.allclose(whole[name][i], p.grad, rtol=1e-9, atol=1e-12)
            assert cd.allclose(chunks[name][i], p.grad, rtol=1e-9, atol=1e-12)


def test_running_statistics_cannot_be_updated_by_examples(rng: np.random.Generator) -> None:
    """The error is functorch's, and the statistics do not change; in eval mode they are read."""
    norm = cd.nn.BatchNorm1d(4).double()
    x = tensor(rng, 3, 5, 4)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean or"):
        vmap(norm)(x)
    assert norm.running_mean.tolist() == [0, 0, 0, 0]
    norm.eval()
    assert cd.allclose(vmap(norm)(x), cd.stack([norm(a) for a in x]))
    own = vmap(lambda x, m, v: (F.batch_norm(x, m, v, training=True), m), out_dims=(0, 0))
    _, mean = own(x, cd.zeros(3, 4, dtype=cd.float64), cd.ones(3, 4, dtype=cd.float64))
    assert cd.allclose(mean, x.mean(1) * 0.1)


def test_dropout_follows_the_randomness() -> None:
    """Each example drops other elements, or the same."""
    x = cd.ones(4, 100)
    different = vmap(lambda a: F.dropout(a), randomness="different")(x)
    same = vmap(lambda a: F.dropout(a), randomness="same")(x)
    assert not cd.equal(different[0], different[1])
    assert (same == same[0]).all()
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(lambda a: F.dropout(a))(x)
