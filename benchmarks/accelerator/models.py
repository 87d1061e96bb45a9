"""The networks whose training steps are measured, written for either library as in any program."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from benchmarks.accelerator.sizes import Sizes


class Step(NamedTuple):
    """The parts of a training step, to be called in order, and the parameters that it trains."""

    forward: Callable[[], None]
    backward: Callable[[], None]
    update: Callable[[], None]
    parameters: list[Any]

    def __call__(self) -> None:
        self.forward()
        self.backward()
        self.update()


def trained(xp: Any, model: Any, optimizer: Any, batches: list[tuple[Any, Any]], loss: Callable[..., Any]) -> Step:
    """Return the steps of a model over its batches in turn."""
    state: dict[str, Any] = {"turn": 0}

    def forward() -> None:
        optimizer.zero_grad()
        x, y = batches[state["turn"] % len(batches)]
        state["turn"] += 1
        state["loss"] = loss(model(x), y)

    return Step(forward, lambda: state["loss"].backward(), optimizer.step, list(model.parameters()))


def cnn(xp: Any, device: str, sizes: Sizes) -> Step:
    """Return the step of two convolutions with pooling and two linear layers, with SGD with momentum."""
    nn, optim = import_module(f"{xp.__name__}.nn"), import_module(f"{xp.__name__}.optim")
    xp.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    batches = images(xp, device, sizes.copies, (sizes.images, 1, 28, 28), 10)
    return trained(xp, model, optim.SGD(model.parameters(), lr=0.01, momentum=0.9), batches, nn.CrossEntropyLoss())


def images(xp: Any, device: str, copies: int, shape: tuple[int, ...], classes: int) -> list[tuple[Any, Any]]:
    """Return batches of noise with labels, on the device."""
    return [
        (xp.randn(*shape).to(device), xp.randint(0, classes, (shape[0],)).to(device)) for _ in range(copies)
    ]  # fmt: skip


def resnet18(xp: Any, device: str, sizes: Sizes) -> Step:
    """Return the step of ResNet-18 with SGD with momentum. Source: He et al., Deep residual learning, 2015, table 1."""
    nn, optim = import_module(f"{xp.__name__}.nn"), import_module(f"{xp.__name__}.optim")
    xp.manual_seed(0)

    def convolution(inside: int, outside: int, size: int, stride: int) -> list[Any]:
        padding = (size - 1) // 2
        return [nn.Conv2d(inside, outside, size, stride=stride, padding=padding, bias=False), nn.BatchNorm2d(outside)]

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            same = stride == 1 and inside == outside
            self.body = nn.Sequential(
                *convolution(inside, outside, 3, stride), nn.ReLU(), *convolution(outside, outside, 3, 1)
            )
            self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(inside, outside, 1, stride))
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.shortcut(x))

    w = sizes.width
    stages = [(w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1)]
    stages += [(4 * w, 8 * w, 2), (8 * w, 8 * w, 1)]
    model = nn.Sequential(
        *convolution(3, w, 7, 2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1),
        *[Block(*stage) for stage in stages], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, 1000),
    ).to(device)  # fmt: skip
    batches = images(xp, device, sizes.copies, (sizes.photos, 3, sizes.pixels, sizes.pixels), 1000)
    return trained(xp, model, optim.SGD(model.parameters(), lr=0.01, momentum=0.9), batches, nn.CrossEntropyLoss())


def gpt(xp: Any, device: str, sizes: Sizes) -> Step:
    """Return the step of decoder blocks with the normalisation first (Radford et al. 2019), with AdamW."""
    nn, optim = import_module(f"{xp.__name__}.nn"), import_module(f"{xp.__name__}.optim")
    attend = attention(xp)
    xp.manual_seed(0)
    width, heads = sizes.features, sizes.heads

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            q, k, v = (
                part.reshape(n, t, heads, width // heads).transpose(1, 2)
                for part in self.qkv(self.before(x)).split(width, dim=2)
            )
            x = x + self.out(attend(q, k, v).transpose(1, 2).reshape(n, t, width))
            return x + self.mlp(self.between(x))

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(sizes.vocabulary, width)
            self.positions = nn.Embedding(sizes.context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(sizes.blocks)])
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, sizes.vocabulary, bias=False)
            self.register_buffer("order", xp.arange(sizes.context))

        def forward(self, x: Any) -> Any:
            return self.head(self.last(self.blocks(self.tokens(x) + self.positions(self.order))))

    model = Network().to(device)
    shape = (sizes.sequences, sizes.context)
    batches = [
        (xp.randint(0, sizes.vocabulary, shape).to(device), xp.randint(0, sizes.vocabulary, shape).to(device))
        for _ in range(sizes.copies)
    ]
    criterion = nn.CrossEntropyLoss()

    def loss(logits: Any, y: Any) -> Any:
        return criterion(logits.reshape(-1, sizes.vocabulary), y.reshape(-1))

    return trained(xp, model, optim.AdamW(model.parameters(), lr=1e-3), batches, loss)


def attention(xp: Any) -> Callable[[Any, Any, Any], Any]:
    """Return a function for causal attention: the library's, if it has one."""
    functional = import_module(f"{xp.__name__}.nn.functional")
    own = getattr(functional, "scaled_dot_product_attention", None)
    if own is not None:
        return lambda q, k, v: own(q, k, v, is_causal=True)

    def attend(q: Any, k: Any, v: Any) -> Any:
        t = q.shape[-2]
        hidden = xp.ones(t, t, dtype=xp.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        return scores.masked_fill(hidden, -float("inf")).softmax(-1) @ v

    return attend


MODELS: dict[str, Callable[[Any, str, Sizes], Step]] = {"CNN": cnn, "ResNet-18": resnet18, "small GPT": gpt}
