"""Transfer the weights of a network that PyTorch has trained to a task with few examples.

``data/digits_0_to_4.pt`` is a file of ``torch.save``: the state of a network that reads the digits 0 to 4. Its features
are used to read all ten digits from ten images of each: the head is replaced and trained alone, then everything at a
low rate. A network that starts from random weights is trained on the same images for comparison.
``python examples/transfer.py --help`` lists the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.nn import functional as F

if __package__:
    from examples.digits import read_digits
    from examples.display import Display
else:
    from digits import read_digits
    from display import Display

WEIGHTS = Path(__file__).parent / "data" / "digits_0_to_4.pt"
EACH = 10
"""Training images of each digit. The others are for the test."""


class Reader(nn.Module):
    """Two convolutions with norms and pools, then a linear head: images (N, 1, 8, 8) to logits (N, classes)."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(128, classes)

    def forward(self, images: Any) -> Any:
        return self.head(self.features(images))


def pretrained() -> Reader:
    """Return the network that PyTorch has trained, for the digits 0 to 4."""
    model = Reader(5)
    model.load_state_dict(cd.load(WEIGHTS))
    return model.eval()


def few_images() -> tuple[Any, Any, Any, Any]:
    """Return training images, their digits, test images and their digits."""
    images, labels = read_digits()
    x, y = cd.tensor(images).reshape(-1, 1, 8, 8), cd.tensor(labels)
    training = cd.zeros(len(y), dtype=cd.bool)
    for digit in range(10):
        training[(y == digit).nonzero()[:EACH, 0]] = True
    return x[training], y[training], x[~training], y[~training]


def train(model: nn.Module, parameters: Any, rate: float, x: Any, y: Any, steps: int, display: Display) -> None:
    """Train some of a model's parameters on all images at once."""
    optimizer = optim.Adam(parameters, lr=rate)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        display.add(loss.item())


@cd.no_grad()
def accuracy(model: nn.Module, x: Any, y: Any) -> float:
    """Return the part of the images that the model reads correctly."""
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main(arguments: Sequence[str] | None = None) -> int:
    """Train with transferred and with random features, and compare. Return 0 if the transfer was of use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60, help="steps of each of the two stages (default 60)")
    parser.add_argument("--curve", type=Path, default=Path("transfer.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    x, y, test_x, test_y = few_images()
    transferred, fresh = pretrained(), Reader(10)
    known = test_y < 5
    print(f"0 to 4, as PyTorch left it: {accuracy(transferred, test_x[known], test_y[known]):.1%}")
    transferred.head = nn.Linear(128, 10)
    with Display("transferred features", 2 * options.steps) as display:
        train(transferred, transferred.head.parameters(), 1e-2, x, y, options.steps, display)
        train(transferred, transferred.parameters(), 1e-3, x, y, options.steps, display)
    display.save(options.curve)
    with Display("random features", 2 * options.steps) as display:
        train(fresh, fresh.parameters(), 1e-2, x, y, 2 * options.steps, display)
    with_transfer, without = accuracy(transferred, test_x, test_y), accuracy(fresh, test_x, test_y)
    print(f"all ten digits from {EACH} images of each: {with_transfer:.1%}; from random weights: {without:.1%}")
    print(f"The loss curve is in {options.curve}.")
    return 0 if with_transfer > without else 1


if __name__ == "__main__":
    raise SystemExit(main())
