"""A small language model writes like the Python reference manual, character by character.

A transformer decoder (Vaswani et al., NeurIPS 2017; Radford et al., 2019) reads the texts of ``help()``, which are part
of every Python (``pydoc_data.topics``), and learns which character comes next. ``python examples/character_gpt.py
--help`` lists the options.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import candelabra as cd
from candelabra import nn, optim
from candelabra.nn import functional as F

if __package__:
    from examples.display import Display
else:
    from display import Display


class Text:
    """The manual as numbers: ``data`` (characters,), and the characters by number."""

    def __init__(self, length: int | None = None) -> None:
        written = "\n".join(topics[name] for name in sorted(topics))[:length]
        self.characters = sorted(set(written))
        self.number = {c: i for i, c in enumerate(self.characters)}
        self.data = cd.tensor([self.number[c] for c in written])

    def batch(self, size: int, context: int) -> tuple[Any, Any]:
        """Return random pieces of the text (size, context), and the same moved on by one character."""
        starts = cd.randint(len(self.data) - context - 1, (size, 1))
        at = starts + cd.arange(context + 1)
        pieces = self.data[at]
        return pieces[:, :-1], pieces[:, 1:]


class Block(nn.Module):
    """Causal self-attention and a network of two layers, each after a norm, with residual connections."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        q, k, v = (
            part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.project(self.norm1(x)).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    """Map numbers of characters (N, length) to logits of the following ones (N, length, characters)."""

    def __init__(self, characters: int, context: int, width: int = 96, heads: int = 4, blocks: int = 3) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(characters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.apply(self.initialize)
        self.head.weight = self.token.weight

    @staticmethod
    def initialize(module: nn.Module) -> None:
        """Draw weights as GPT-2 does."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, numbers: Any) -> Any:
        x = self.token(numbers) + self.position(cd.arange(numbers.shape[1], device=numbers.device))
        return self.head(self.norm(self.blocks(x)))

    @cd.no_grad()
    def write(self, numbers: Any, count: int, temperature: float = 0.8) -> Any:
        """Continue texts (N, length) by ``count`` characters, which are drawn one after the other."""
        self.eval()
        for _ in range(count):
            logits = self(numbers[:, -self.context :])[:, -1] / temperature
            numbers = cd.cat([numbers, cd.multinomial(logits.softmax(-1), 1)], dim=1)
        return numbers


def train(model: GPT, text: Text, steps: int, batch: int, display: Display) -> None:
    """Train with AdamW, a linear warm-up and a cosine decay of the rate. The loss is in bits per character."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warm = max(1, steps // 10)
    schedule = optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=warm),
            optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps - warm)),
        ],
        milestones=[warm],
    )
    device = next(model.parameters()).device
    model.train()
    for _ in range(steps):
        inputs, targets = (t.to(device) for t in text.batch(batch, model.context))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        display.add(loss.item() / math.log(2))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print a text that continues a prompt. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="batches to train on (default 600)")
    parser.add_argument("--batch", type=int, default=16, help="pieces of text per batch (default 16)")
    parser.add_argument("--context", type=int, default=64, help="characters per piece (default 64)")
    parser.add_argument("--prompt", default="The statement ", help="the beginning of the text that is written")
    parser.add_argument("--length", type=int, default=300, help="characters to write (default 300)")
    parser.add_argument("--device", default=None, help="such as opencl:0 (default: the default device)")
    parser.add_argument("--curve", type=Path, default=Path("character_gpt.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    text = Text()
    model = GPT(len(text.characters), options.context).to(options.device or cd.get_default_device())
    with Display("characters", options.steps, "bits per character") as display:
        train(model, text, options.steps, options.batch, display)
    display.save(options.curve)
    start = cd.tensor([[text.number[c] for c in options.prompt]], device=next(model.parameters()).device)
    print("".join(text.characters[i] for i in model.write(start, options.length)[0].tolist()))
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
