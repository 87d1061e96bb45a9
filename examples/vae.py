"""A variational autoencoder draws handwritten digits (Kingma & Welling, ICLR 2014).

The encoder maps an image of 8 × 8 pixels to a normal distribution over codes, the decoder maps a code to an image. The
loss is the negative evidence lower bound. ``python examples/vae.py --help`` lists the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.nn import functional as F
from candelabra.utils.data import DataLoader, TensorDataset

if __package__:
    from examples.digits import read_digits
    from examples.display import Display
else:
    from digits import read_digits
    from display import Display

PIXELS = 64
SHADES = " ░▒▓█"


class VAE(nn.Module):
    """Encoder and decoder with one hidden layer each."""

    def __init__(self, hidden: int = 256, codes: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, codes)
        self.log_variance = nn.Linear(hidden, codes)
        self.decoder = nn.Sequential(nn.Linear(codes, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS))

    def forward(self, images: Any) -> tuple[Any, Any, Any]:
        """Return the logits of the reconstruction (N, 64), and the mean and log-variance of the codes (N, codes)."""
        hidden = self.encoder(images)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        codes = mean + cd.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(codes), mean, log_variance


def negative_bound(images: Any, logits: Any, mean: Any, log_variance: Any) -> Any:
    """Return the negative evidence lower bound in nats per image."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(images)


def train(model: VAE, images: Any, epochs: int, display: Display) -> float:
    """Train with Adam. Return the mean loss of the last epoch."""
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
    for _ in range(epochs):
        total = 0.0
        for (batch,) in loader:
            optimizer.zero_grad()
            loss = negative_bound(batch, *model(batch))
            loss.backward()
            optimizer.step()
            total += loss.item()
        display.add(total / len(loader))
    return display.values[-1]


def drawn(images: Any) -> str:
    """Return images of values from 0 to 1, side by side, as text."""
    levels = (images.reshape(-1, 8, 8) * (len(SHADES) - 1)).round().to(cd.int64).tolist()
    return "\n".join("  ".join("".join(SHADES[v] * 2 for v in image[row]) for image in levels) for row in range(8))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print digits that no one has written. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30, help="passes over the 1,797 images (default 30)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("vae.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    images = cd.tensor(read_digits()[0], device=options.device)
    model = VAE().to(images.device)
    with Display("variational autoencoder", options.epochs, "nats per image") as display:
        train(model, images, options.epochs, display)
    display.save(options.curve)
    with cd.no_grad():
        print(drawn(model.decoder(cd.randn(5, 8, device=images.device)).sigmoid().cpu()))
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
