"""Learn to read handwritten digits, on every device that the installed backends offer.

A small convolutional network is trained from the same seed on each device; a table compares the devices, the model goes
to a safetensors file and comes back. ``python examples/digits.py --help`` says what can be changed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.library import plugins
from candelabra.utils.data import DataLoader, TensorDataset
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
SIZE = 8
HELD_OUT = 360
"""Digits kept for the test, a fifth; which ones, a seed of its own says."""


@dataclass
class Run:
    """What came of training on one device."""

    device: str
    losses: list[float]
    accuracy: float
    seconds: float
    model: nn.Module
    predictions: list[int]


def read_digits(path: Path = DATA) -> tuple[list[list[float]], list[int]]:
    """Images as 64 numbers from 0 to 1, and the digits that they show."""
    images, labels = [], []
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.reader(lines):
            *pixels, label = map(int, row)
            images.append([pixel / 16 for pixel in pixels])
            labels.append(label)
    return images, labels


def split_digits(images: list[list[float]], labels: list[int]) -> tuple[Any, Any, Any, Any]:
    """(training images, training labels, test images, test labels) on the default device, shuffled before the split."""
    cd.manual_seed(1998)
    order = cd.randperm(len(images))
    x = cd.tensor(images).reshape(-1, 1, SIZE, SIZE)[order]
    y = cd.tensor(labels)[order]
    return x[HELD_OUT:], y[HELD_OUT:], x[:HELD_OUT], y[:HELD_OUT]


def make_model() -> nn.Sequential:
    """Two convolutions, each followed by a pool that halves the image, then one linear layer: 21,578 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 2 * 2, 10),
    )  # fmt: skip


def predict(model: nn.Module, images: Any) -> list[int]:
    """The digits that the model reads in the images."""
    model.eval()
    with cd.no_grad():
        return list(model(images).argmax(dim=1).tolist())


def train(device: str, epochs: int, seed: int, digits: Any, progress: Progress) -> Run:
    """Train from the seed on one device and try the model on digits that it has not seen."""
    with cd.device(device):
        train_x, train_y, test_x, test_y = split_digits(*digits)
        cd.manual_seed(seed)
        model = make_model()
        optimizer = optim.AdamW(model.parameters(), lr=3e-3)
        scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
        loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
        task = progress.add_task(device, total=epochs, loss=float("nan"))
        losses = []
        start = perf_counter()
        for _ in range(epochs):
            losses.append(train_epoch(model, loader, optimizer))
            scheduler.step()
            progress.update(task, advance=1, loss=losses[-1])
        seconds = perf_counter() - start
        predictions = predict(model, test_x)
        right = sum(p == y for p, y in zip(predictions, test_y.tolist(), strict=True))
    return Run(device, losses, right / HELD_OUT, seconds, model, predictions)


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: optim.Optimizer) -> float:
    """One pass over the training images; returns the mean loss of its batches."""
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def all_devices() -> tuple[list[str], dict[str, str]]:
    """Every device, the reference first; and the backends that have none or failed, with the reason."""
    reference = str(plugins.reference_device())
    found, silent = [reference], {}
    for name in plugins.plugins():
        try:
            backend, _ = plugins.backend(name)
            devices = [f"{name}:{index}" for index in range(len(backend.devices()))]
        except Exception as error:
            silent[name] = str(error)
            continue
        if not devices:
            silent[name] = "no device"
        found += [device for device in devices if device != reference]
    return found, silent


def table_of(runs: Sequence[Run]) -> Table:
    """One line per device; the first is what the others are compared with."""
    reference = runs[0]
    table = Table(title="Handwritten digits, one seed on every device")
    table.add_column("device")
    for title in ("test accuracy", "seconds", f"largest difference of losses from {reference.device}"):
        table.add_column(title, justify="right")
    for run in runs:
        difference = max((abs(a - b) for a, b in zip(run.losses, reference.losses)), default=0.0)
        shown = "—" if run is reference else f"{difference:.1e}"
        table.add_row(run.device, f"{run.accuracy:.2%}", f"{run.seconds:.1f}", shown)
    return table


def reload(run: Run, path: Path, digits: Any) -> list[int]:
    """What a fresh model predicts that was given the weights in the file."""
    with cd.device(run.device):
        model = make_model()
        model.load_state_dict(cd.load(path))
        return predict(model, split_digits(*digits)[2])


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15, help="passes over the 1,437 training images (default 15)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, dropout and order (default 0)")
    parser.add_argument("--device", action="append", help="train here only; may be given again (default: everywhere)")
    parser.add_argument("--save", type=Path, default=Path("digits.safetensors"), help="where the model goes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; 0 if the model that was loaded predicts what the saved one did."""
    options = parse(arguments)
    console = Console()
    devices, silent = (options.device, {}) if options.device else all_devices()
    for name, reason in silent.items():
        console.print(f"[yellow]{name} is installed and has nothing to train on: {reason}[/yellow]")
    digits = read_digits()
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"), TimeElapsedColumn(), console=console,
    )  # fmt: skip
    with bar as progress:
        runs = [train(device, options.epochs, options.seed, digits, progress) for device in devices]
    console.print(table_of(runs))

    cd.save(runs[0].model.state_dict(), options.save)
    same = reload(runs[0], options.save, digits) == runs[0].predictions
    verdict = "the same predictions" if same else "[red]other predictions[/red]"
    console.print(f"Saved as {options.save}, loaded into a fresh model: {verdict} for all {HELD_OUT} test images.")
    console.print(
        "\nWhat to try next:\n"
        '  make demo ARGS="--seed 1"    another start, still the same numbers on every device\n'
        "  candelabra devices           what your machine offers; a backend's package brings its device along\n"
        "  docs/tour.md                 one a + b, followed through every file that it enters"
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
