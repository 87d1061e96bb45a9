"""Fit a physical model to 43 years of carbon dioxide over Mauna Loa with L-BFGS (Liu & Nocedal, 1989).

The model of the concentration at time t, in years since 1958, has nine parameters: the level before the industrial age
plus an exponential growth, and the yearly cycle of vegetation with its first three harmonics:

    c(t) = base + rise * exp(t / scale) + sum over k = 1, 2, 3 of a_k cos(2 pi k t) + b_k sin(2 pi k t)

``python examples/carbon_dioxide.py --help`` lists the options; the data are described in ``examples/data/README.md``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import nn, optim

if __package__:
    from examples.display import Display
else:
    from display import Display

DATA = Path(__file__).parent / "data" / "co2.csv.gz"
START = 1958
HARMONICS = 3


def read_concentrations(path: Path = DATA) -> tuple[list[float], list[float]]:
    """Return times in years since 1958, and concentrations in parts per million."""
    times, values = [], []
    with gzip.open(path, "rt", newline="") as lines:
        for day, value in csv.reader(lines):
            at = date(int(day[:4]), int(day[4:6]), int(day[6:]))
            times.append(at.year - START + (at.timetuple().tm_yday - 0.5) / 365.25)
            values.append(float(value))
    return times, values


class Concentration(nn.Module):
    """The model: growth and yearly cycle. Parameters are scaled so that all are of the order of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Parameter(cd.tensor(2.8))
        self.rise = nn.Parameter(cd.tensor(0.3))
        self.scale = nn.Parameter(cd.tensor(0.5))
        self.cycle = nn.Parameter(cd.zeros(2, HARMONICS))
        self.register_buffer("orders", 2 * math.pi * cd.arange(1.0, HARMONICS + 1))

    def growth(self, t: Any) -> Any:
        """Return the concentration without the yearly cycle: ``t`` (N,) in years to (N,) in parts per million."""
        return 100 * (self.base + self.rise * (t / (100 * self.scale)).exp())

    def forward(self, t: Any) -> Any:
        angles = t[:, None] * self.orders
        return self.growth(t) + angles.cos() @ self.cycle[0] + angles.sin() @ self.cycle[1]


def fit(model: Concentration, t: Any, c: Any, steps: int, display: Display) -> float:
    """Minimise the mean square of the residuals. Return its root, in parts per million."""
    optimizer = optim.LBFGS(model.parameters(), lr=1, max_iter=20, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (model(t) - c).square().mean()
        loss.backward()
        return loss

    for _ in range(steps):
        display.add(math.sqrt(optimizer.step(closure).item()))
    return math.sqrt(closure().item())


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the model and print what its parameters mean. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15, help="of up to 20 iterations each (default 15)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("carbon_dioxide.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    times, values = read_concentrations()
    t, c = (cd.tensor(x, dtype=cd.float64, device=options.device) for x in (times, values))
    model = Concentration().to(t)
    with Display("carbon dioxide", options.steps, "residual in ppm") as display:
        residual = fit(model, t, c, options.steps, display)
    display.save(options.curve)
    amplitudes = model.cycle.square().sum(0).sqrt().tolist()
    rate = (model.growth(t[-1:]) - model.growth(t[-1:] - 1)).item()
    print(
        f"before growth {100 * model.base.item():.1f} ppm, growth by a factor of e in {100 * model.scale.item():.1f} "
        f"years,\n{rate:.2f} ppm in the last year, yearly cycle of ± {amplitudes[0]:.2f} ppm, "
        f"residual {residual:.2f} ppm"
    )
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
