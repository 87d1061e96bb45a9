"""Classify first names as female or male from their letters, with a convolution over characters (Kim, EMNLP 2014).

The data are the names of the United States census of 1990; a fifth of them is held out. ``python examples/names.py
--help`` lists the options.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.utils.data import DataLoader, TensorDataset, random_split

if __package__:
    from examples.display import Display
else:
    from display import Display

DATA = Path(__file__).parent / "data" / "names.csv.gz"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTH = 12
CLASSES = ("female", "male")


def read_names(path: Path = DATA) -> list[tuple[str, int]]:
    """Return names and classes. A name in both lists has the class in which it is more frequent."""
    found: dict[str, tuple[float, int]] = {}
    with gzip.open(path, "rt", newline="") as lines:
        for name, percent, kind in csv.reader(lines):
            found[name] = max(found.get(name, (0.0, 0)), (float(percent), CLASSES.index(kind)))
    return [(name, kind) for name, (_, kind) in found.items()]


def encoded(names: Sequence[str]) -> Any:
    """Return names as numbers (N, 12): 1 to 26 for the letters, aligned to the right, 0 before them."""
    rows = [[LETTERS.index(c) + 1 for c in name[-LENGTH:]] for name in names]
    return cd.tensor([[0] * (LENGTH - len(row)) + row for row in rows])


class Classifier(nn.Module):
    """Embed the letters, convolve over neighbours, keep the maximum over positions."""

    def __init__(self, width: int = 32, channels: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, width, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, channels, size) for size in (2, 3, 4))
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(3 * channels + width, len(CLASSES))

    def forward(self, names: Any) -> Any:
        embedded = self.embedding(names).transpose(1, 2)
        found = [F.relu(convolution(embedded)).amax(-1) for convolution in self.convolutions]
        return self.head(self.dropout(cd.cat([*found, embedded[..., -1]], dim=1)))


def accuracy(model: Classifier, dataset: Any) -> float:
    """Return the part of names that are classified as in the census."""
    model.eval()
    right = 0
    with cd.no_grad():
        for names, kinds in DataLoader(dataset, batch_size=512):
            right += int((model(names).argmax(1) == kinds).sum())
    return right / len(dataset)


def train(model: Classifier, dataset: Any, epochs: int, display: Display) -> None:
    """Train with AdamW and a rate that follows one cycle."""
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * len(loader))
    for _ in range(epochs):
        model.train()
        total = 0.0
        for names, kinds in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(names), kinds, label_smoothing=0.05)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        display.add(total / len(loader))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print the accuracy on held-out names and a few opinions. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6, help="passes over the training names (default 6)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("names.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    names, kinds = zip(*read_names(), strict=True)
    device = options.device or cd.get_default_device()
    every = TensorDataset(encoded(names).to(device), cd.tensor(kinds).to(device))
    training, held_out = random_split(every, [0.8, 0.2])
    model = Classifier().to(device)
    with Display("names", options.epochs) as display:
        train(model, training, options.epochs, display)
    display.save(options.curve)
    print(
        f"{accuracy(model, held_out):.1%} of {len(held_out)} names that it has not seen are classified as in the census"
    )
    asked = ["ada", "alan", "grace", "linus", "yukiko", "kofi"]
    with cd.no_grad():
        chances = model(encoded(asked).to(device)).softmax(1)[:, 0].tolist()
    print("chance of a female name: " + ", ".join(f"{n} {p:.0%}" for n, p in zip(asked, chances, strict=True)))
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
