"""Compiled modules and training steps give the bits of eager ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import nn, optim


def mlp() -> nn.Module:
    """A network with batch norm and dropout."""
    return nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 3))


def cnn() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


class Tied(nn.Module):
    """A transformer block between an embedding and a linear layer that share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, 3)
        self.head.weight = self.embedding.weight

    def forward(self, x: cd.Tensor) -> Any:
        return self.head(self.block(self.embedding(x.long() % 3))).mean(1)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (16, 6)), "cnn": (cnn, (8, 1, 6, 6)), "tied": (Tied, (4, 5)),
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adamw unfused": lambda p: optim.AdamW(p, lr=0.01, fused=False),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01),
}


def programs(compiled: Any) -> int:
    """The number of programs of a compiled function or module."""
    return len(getattr(compiled, "_compiled_call", compiled).programs)


def run(network: str, optimizer: str, compiled: str, steps: int = 7) -> tuple[Any, Any]:
    """Train for a few steps; return the losses and the final state. ``compiled``: "", "step" or "model"."""
    make, shape = NETWORKS[network]
    cd.manual_seed(7)
    model = make()
    opt = OPTIMIZERS[optimizer](model.parameters())
    schedule = optim.lr_scheduler.StepLR(opt, 2, 0.5)
    called = cd.compile(model, fullgraph=True) if compiled == "model" else model

    def step(x: cd.Tensor, target: cd.Tensor) -> cd.Tensor:
        opt.zero_grad()
        loss = F.cross_entropy(called(x), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()
        return loss

    stepped = cd.compile(step, fullgraph=True) if compiled == "step" else step
    losses = []
    for _ in range(steps):
        x, target = cd.randn(shape), cd.randint(0, 3, shape[:1])
        losses.append(stepped(x, target).item())
    found = stepped if compiled == "step" else called._compiled_call
    if compiled:
        assert 0 < len(found.programs) <= 2
        assert found.eager is None
    state = {k: v.tolist() for k, v in model.state_dict().items()}
    return losses, (state, opt.param_groups[0]["lr"], {n: p.grad.tolist() for n, p in model.named_parameters()})


@pytest.mark.parametrize("compiled", ["step", "model"])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks(network: str, compiled: str) -> None:
    """Losses, parameters, buffers, gradients and learning rates are those of eager training."""
    assert run(network, "adam", compiled) == run(network, "adam", "")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str) -> None:
    """Every optimizer steps as in eager training."""
    assert run("mlp", optimizer, "step") == run("mlp", optimizer, "")


def test_training_and_evaluation() -> None:
    """``train()`` and ``eval()`` are separate programs; buffers advance in training only."""
    model = mlp()
    compiled = cd.compile(model, fullgraph=True)
    x = cd.randn(8, 6)
    for _ in range(3):
        model.train()
        before = model[1].num_batches_tracked.item()
        compiled(x)
        assert model[1].num_batches_tracked.item() == before + 1
        model.eval()
        with cd.no_grad():
            assert cd.equal(compiled(x), model(x))
    assert programs(compiled) == 2


def test_manual_steps() -> None:
    """A step that is written out with ``no_grad`` and in-place operators is one graph."""
    cd.manual_seed(3)
    eager, model = nn.Linear(3, 1), nn.Linear(3, 1)
    model.load_state_dict(eager.state_dict())

    def step(network: nn.Module, x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        loss = ((network(x) - y) ** 2).mean()
        for p, g in zip(network.parameters(), cd.autograd.grad(loss, list(network.parameters())), strict=True):
            with cd.no_grad():
                p -= 0.1 * g
        return loss.detach()

    compiled = cd.compile(step, fullgraph=True)
    for _ in range(5):
        x, y = cd.randn(4, 3), cd.randn(4, 1)
        assert compiled(model, x, y).item() == step(eager, x, y).item()
    assert all(cd.equal(a, b) for a, b in zip(model.parameters(), eager.parameters(), strict=True))
    assert programs(compiled) == 1
    assert len(compiled.programs[0].graphs) == 1


def test_frozen_parameters() -> None:
    """A parameter that is frozen later makes another program, and gets no gradient."""
    model = mlp()
    compiled = cd.compile(model, fullgraph=True)
    x = cd.randn(4, 6)
    compiled(x).sum().backward()
    model[0].weight.requires_grad_(False)
    model.zero_grad()
    compiled(x).sum().backward()
    assert model[0].weight.grad is None
    assert model[4].weight.grad is not None
    assert programs(compiled) == 2


def test_replaced_parameter() -> None:
    """A parameter that is replaced by another is used."""
    model = nn.Linear(2, 1, bias=False)
    compiled = cd.compile(model, fullgraph=True)
    compiled(cd.ones(1, 2))
    model.weight = nn.Parameter(cd.full((1, 2), 3.0))
    assert compiled(cd.ones(1, 2)).item() == 6


def test_forward_hooks() -> None:
    """A forward hook that is added later runs."""
    model = nn.Linear(2, 1)
    compiled = cd.compile(model, fullgraph=True)
    compiled(cd.ones(1, 2))
    model.register_forward_hook(lambda module, args, out: out * 0)
    assert compiled(cd.ones(1, 2)).item() == 0


def test_optimized_module() -> None:
    """A compiled module is a module with the parameters, the attributes and the mode of the other one."""
    model = mlp()
    compiled = cd.compile(model)
    assert isinstance(compiled, nn.Module)
    assert list(compiled.parameters()) == list(model.parameters())
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    compiled.eval()
    assert not model[3].training
    assert compiled[0] is model[0]
    assert len(compiled) == 5
    compiled.label = "name"
    assert model.label == "name"
    del compiled.label
    with pytest.raises(AttributeError, match="label"):
        _ = compiled.label
    assert cd.equal(compiled(cd.ones(2, 6)), model(cd.ones(2, 6)))
    assert cd.equal(compiled(cd.ones(2, 6)), compiled.forward(cd.ones(2, 6)))
    assert cd.compiler.disable(compiled) is model


def test_module_compiled_in_place() -> None:
    """``module.compile()`` compiles the calls of the module, with its hooks."""
    model = nn.Linear(2, 1)
    expected = model(cd.ones(1, 2))
    model.compile(fullgraph=True)
    assert [cd.equal(model(cd.ones(1, 2)), expected) for _ in range(3)] == [True] * 3
    assert programs(model) == 1
    model.register_forward_hook(lambda module, args, out: out + 1)
    assert [cd.equal(model(cd.ones(1, 2)), expected + 1) for _ in range(2)] == [True] * 2


def test_autocast() -> None:
    """Autocast around a compiled module, or inside of it, is traced through."""
    model = nn.Linear(4, 3)
    compiled = cd.compile(model, fullgraph=True)
    x = cd.randn(2, 4)
    for _ in range(3):
        with cd.autocast("cpu", dtype=cd.bfloat16):
            out = compiled(x)
            assert out.dtype is cd.bfloat16
            assert cd.equal(out, model(x))
        assert compiled(x).dtype is cd.float32
        with cd.no_grad():
            model.weight.add_(1)
    assert programs(compiled) == 2


@pytest.mark.filterwarnings("ignore:candelabra.compile:UserWarning")
@pytest.mark.parametrize("network", ["mlp", "cnn"])  # that with tied weights adds gradients in another order
def test_training_in_segments(network: str) -> None:
    """A training step that reads a result and its loss trains as in eager calls, bit for bit."""

    def trained(compile: Callable[..., Any]) -> tuple[list[float], Any]:
        make, shape = NETWORKS[network]
        cd.manual_seed(7)
        model = make()
        optimizer = optim.AdamW(model.parameters(), lr=0.01)

        def step(x: cd.Tensor, target: cd.Tensor) -> float:
            optimizer.zero_grad()
            logits = model(x)
            scale = 1.0 if logits.sum().item() > 1e9 else 2.0
            loss = F.cross_entropy(logits * scale, target)
            loss.backward()
            optimizer.step()
            return loss.item()

        stepped = compile(step)
        losses = [stepped(cd.randn(shape), cd.randint(0, 3, shape[:1])) for _ in range(5)]
        if compile is cd.compile:
            assert stepped.segments.compiled
        return losses, [p.tolist() for p in (*model.parameters(), *model.buffers())]

    assert trained(cd.compile) == trained(lambda function: function)


def test_encoder_with_a_mask() -> None:
    """A compiled encoder applies its mask without reading whether that is causal, so it is one graph."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    compiled = cd.compile(encoder, fullgraph=True)
    x, mask = cd.randn(2, 5, 8), nn.Transformer.generate_square_subsequent_mask(5)
    for _ in range(2):
        assert cd.allclose(compiled(x, mask), encoder(x, mask), atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", antialias=True),
    ],
    ids=["adaptive_avg_pool2d", "interpolate"],
)
def test_tables_that_are_computed_while_tracing(function: Callable[[cd.Tensor], cd.Tensor], rng: Any) -> None:
    """Tables that depend on sizes only are constants of a graph, whether it or an eager call needs them first."""
    compiled = cd.compile(function, fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.standard_normal((1, 2, 5, 7)))
        assert compiled(x).tolist() == function(x).tolist()


def test_bags_in_one_graph() -> None:
    """Offsets are checked when the graph runs, with the error of the eager call."""
    compiled = cd.compile(lambda x, w, starts: F.embedding_bag(x, w, starts), fullgraph=True)
    x, weight = cd.tensor([1, 0, 2, 1]), cd.tensor([[1.0], [2.0], [4.0]])
    for starts, due in (([0, 1], [[2.0], [7 / 3]]), ([0, 3], [[7 / 3], [2.0]])):
        assert compiled(x, weight, cd.tensor(starts)).allclose(cd.tensor(due))
    assert len(compiled.programs) == 1
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0.*However, got 1"):
        compiled(x, weight, cd.tensor([1, 2]))
    with pytest.raises(RuntimeError, match=r"greater than input's length\(4\), but got offsets\[-1\] of 5"):
        compiled(x, weight, cd.tensor([0, 5]))


def test_lengths_that_are_numbers(rng: Any) -> None:
    """The lengths of sequences as numbers need no value of a tensor."""
    compiled = cd.compile(lambda x: F.ctc_loss(x.log_softmax(-1), targets, (5, 4), (2, 1)), fullgraph=True)
    targets = cd.tensor([[1, 2], [2, 2]])
    for _ in range(3):
        x = cd.tensor(rng.standard_normal((5, 2, 3)))
        assert compiled(x).item() == F.ctc_loss(x.log_softmax(-1), targets, cd.tensor([5, 4]), cd.tensor([2, 1])).item()
