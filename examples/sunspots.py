"""Forecast sunspots with an LSTM (Hochreiter & Schmidhuber, 1997; Gers et al., 2000).

The network reads the yearly numbers from 1700 on and forecasts each following year. It is trained on the years before
1950 and tested on those from 1950 to 2008. It is compared with the forecast that next year is like this one.
``python examples/sunspots.py --help`` lists the options; the data are described in ``examples/data/README.md``.
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

if __package__:
    from examples.display import Display
else:
    from display import Display

DATA = Path(__file__).parent / "data" / "sunspots.csv.gz"
SPLIT = 1950
SCALE = 100.0


def read_sunspots(path: Path = DATA) -> tuple[list[int], list[float]]:
    """Return the years, and the mean number of sunspots in each."""
    with gzip.open(path, "rt", newline="") as lines:
        years, numbers = zip(*csv.reader(lines), strict=True)
    return list(map(int, years)), list(map(float, numbers))


class Forecaster(nn.Module):
    """Map a series (length, 1) to forecasts (length, 1) of the following values."""

    def __init__(self, hidden: int = 24) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, series: Any, state: Any = None) -> tuple[Any, Any]:
        hidden, state = self.lstm(series, state)
        return series + self.head(hidden), state  # the network learns the change

    @cd.no_grad()
    def continued(self, series: Any, count: int) -> Any:
        """Return forecasts (count, 1) of the years after a series, each computed from the former ones."""
        self.eval()
        forecast, state = self(series)
        found = [forecast[-1:]]
        while len(found) < count:
            forecast, state = self(found[-1], state)
            found.append(forecast)
        return cd.cat(found)


def train(model: Forecaster, series: Any, epochs: int, display: Display) -> None:
    """Train on one series with Adam. The loss is the mean square error of all forecasts."""
    optimizer = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(series[:-1])[0], series[1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        display.add(loss.item())


def errors(model: Forecaster, series: Any, first: int) -> tuple[float, float]:
    """Return the root mean square errors from index ``first`` on: of the model, and of "as in the year before"."""
    model.eval()
    with cd.no_grad():
        forecasts = model(series[:-1])[0]
    ours = (forecasts - series[1:])[first - 1 :].square().mean().sqrt().item()
    naive = (series[1:] - series[:-1])[first - 1 :].square().mean().sqrt().item()
    return SCALE * ours, SCALE * naive


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print the errors of the test years and the forecast of the next eleven. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200, help="passes over the years before 1950 (default 200)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("sunspots.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    years, numbers = read_sunspots()
    series = cd.tensor(numbers, device=options.device)[:, None] / SCALE
    first = years.index(SPLIT)
    model = Forecaster().to(series.device)
    with Display("sunspots", options.epochs) as display:
        train(model, series[:first], options.epochs, display)
    display.save(options.curve)
    error, naive = errors(model, series, first)
    print(f"error of one year's forecast from {SPLIT} on: {error:.1f} sunspots; as in the year before: {naive:.1f}")
    future = (SCALE * model.continued(series, 11)).flatten().tolist()
    print(f"forecast from {years[-1] + 1} on: " + ", ".join(f"{max(0.0, value):.0f}" for value in future))
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
