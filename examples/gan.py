"""Two networks compete: one draws digits, the other tells drawn from written ones (Goodfellow et al., NeurIPS 2014).

Both are small convolutional networks on images of 8 × 8 pixels (Radford et al., ICLR 2016). The discriminator's loss
starts at 2 log 2 = 1.39, where it guesses. ``python examples/gan.py --help`` lists the options.
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
    from examples.vae import drawn
else:
    from digits import read_digits
    from display import Display
    from vae import drawn

NOISE = 16


def make_generator() -> nn.Sequential:
    """Map noise (N, 16, 1, 1) to images (N, 1, 8, 8) of values from 0 to 1."""
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 64, 2, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Sigmoid(),
    )  # fmt: skip


def make_discriminator() -> nn.Sequential:
    """Map images (N, 1, 8, 8) to logits (N,): positive for a written digit."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 1, 2), nn.Flatten(0),
    )  # fmt: skip


class Game:
    """Both networks and their optimizers."""

    def __init__(self, device: Any) -> None:
        self.generator = make_generator().to(device)
        self.discriminator = make_discriminator().to(device)
        options = {"lr": 1e-3, "betas": (0.5, 0.999)}
        self.draws = optim.Adam(self.generator.parameters(), **options)
        self.judges = optim.Adam(self.discriminator.parameters(), **options)

    def draw(self, count: int, like: Any) -> Any:
        """Return images that the generator computes from noise."""
        return self.generator(like.new_empty(count, NOISE, 1, 1).normal_())

    def round(self, written: Any) -> tuple[float, float]:
        """Train both networks on one batch. Return the discriminator's and the generator's loss."""
        made = self.draw(len(written), written)
        self.judges.zero_grad()
        real, fake = self.discriminator(written), self.discriminator(made.detach())
        judged = F.softplus(-real).mean() + F.softplus(fake).mean()
        judged.backward()
        self.judges.step()

        self.draws.zero_grad()
        fooled = F.softplus(-self.discriminator(made)).mean()
        fooled.backward()
        self.draws.step()
        return judged.item(), fooled.item()


def main(arguments: Sequence[str] | None = None) -> int:
    """Train both networks, then print drawn digits. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="passes over the 1,797 images (default 40)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("gan.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    images = cd.tensor(read_digits()[0], device=options.device).reshape(-1, 1, 8, 8)
    game = Game(images.device)
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)
    with Display("adversarial networks", options.epochs * len(loader), "discriminator's loss") as display:
        for _ in range(options.epochs):
            for (batch,) in loader:
                display.add(game.round(batch)[0])
    display.save(options.curve)
    game.generator.eval()
    with cd.no_grad():
        print(drawn(game.draw(5, images).cpu()))
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
