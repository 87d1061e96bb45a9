"""Evaluate expressions with a tree-LSTM (Tai, Socher & Manning, 2015), batched across trees of different shapes.

An expression such as ``max(3, min(9, max(0, 4)))`` is a binary tree of digits; the network reads it from the leaves to
the root, and predicts its value. The trees are drawn from a seed, a small relative of ListOps (Nangia & Bowman, 2018).
The code computes one tree after the other, as one would write it down. ``cd.batching()`` runs equal operators of all
trees of a minibatch as one call; with ``--one-by-one`` they run as they are written, for comparison.
``python examples/tree_lstm.py --help`` lists the options.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import nn, optim

if __package__:
    from examples.display import Display
else:
    from display import Display

OPERATORS = (min, max)
BATCH = 64


class Tree(NamedTuple):
    """An expression: a digit, or an operator and two expressions. ``symbol``: the number of the digit or operator."""

    symbol: Any
    children: tuple[Tree, ...]
    value: int


def draw_tree(source: random.Random, leaves: int) -> Tree:
    """Return a random expression with a number of digits."""
    if leaves == 1:
        digit = source.randrange(10)
        return Tree(cd.tensor(digit), (), digit)
    left = source.randrange(1, leaves)
    children = draw_tree(source, left), draw_tree(source, leaves - left)
    number = source.randrange(len(OPERATORS))
    value = OPERATORS[number](child.value for child in children)
    return Tree(cd.tensor(number), children, value)


def draw_trees(count: int, seed: int, most: int = 16) -> list[Tree]:
    """Return random expressions of 2 to ``most`` digits."""
    source = random.Random(seed)
    return [draw_tree(source, source.randrange(2, most + 1)) for _ in range(count)]


class TreeLSTM(nn.Module):
    """A binary tree-LSTM: a node's state is computed from those of its two children, and from its operator."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.digits = nn.Embedding(10, 2 * hidden)
        self.gates = nn.Linear(2 * hidden, 5 * hidden)
        self.operators = nn.Embedding(len(OPERATORS), 5 * hidden)
        self.head = nn.Linear(hidden, 10)

    def forward(self, tree: Tree) -> Any:
        """Return the scores of the ten values of an expression."""
        return self.head(self.state(tree)[0])

    def state(self, tree: Tree) -> tuple[Any, Any]:
        """Return the output and the memory cell of a node."""
        if not tree.children:
            h, c = self.digits(tree.symbol).chunk(2)
            return h.tanh(), c
        (left, left_cell), (right, right_cell) = [self.state(child) for child in tree.children]
        gates = self.gates(cd.cat((left, right))) + self.operators(tree.symbol)
        write, keep_left, keep_right, show, new = gates.chunk(5)
        cell = write.sigmoid() * new.tanh() + keep_left.sigmoid() * left_cell + keep_right.sigmoid() * right_cell
        return show.sigmoid() * cell.tanh(), cell


def loss_of(model: TreeLSTM, trees: Sequence[Tree], batched: bool) -> Any:
    """Return the mean loss of several trees."""
    with cd.batching() if batched else nullcontext():
        scores = cd.stack([model(tree) for tree in trees])
        return nn.functional.cross_entropy(scores, cd.tensor([tree.value for tree in trees]))


def train(model: TreeLSTM, trees: Sequence[Tree], epochs: int, display: Display, batched: bool = True) -> None:
    """Train with Adam on minibatches of trees."""
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for start in range(0, len(trees), BATCH):
            optimizer.zero_grad()
            loss = loss_of(model, trees[start : start + BATCH], batched)
            loss.backward()
            optimizer.step()
            display.add(loss.item())


@cd.no_grad()
def accuracy(model: TreeLSTM, trees: Sequence[Tree]) -> float:
    """Return the share of expressions that are evaluated correctly."""
    with cd.batching():
        found = cd.stack([model(tree) for tree in trees]).argmax(1).tolist()
    return sum([value == tree.value for value, tree in zip(found, trees, strict=True)]) / len(trees)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, then print the time and the accuracy on expressions that the network has not seen. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the expressions (default 10)")
    parser.add_argument("--trees", type=int, default=1024, help="expressions to train on (default 1024)")
    parser.add_argument("--hidden", type=int, default=150, help="the size of a node's state (default 150)")
    parser.add_argument("--one-by-one", action="store_true", help="do not batch the operators of different trees")
    parser.add_argument("--curve", type=Path, default=Path("tree_lstm.svg"), help="the file of the loss curve")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    trees, others = draw_trees(options.trees, 0), draw_trees(256, 1)
    model = TreeLSTM(options.hidden)
    began = time.perf_counter()
    with Display("tree_lstm", options.epochs * -(-len(trees) // BATCH)) as display:
        train(model, trees, options.epochs, display, not options.one_by_one)
    display.save(options.curve)
    print(f"trained in {time.perf_counter() - began:.1f} s")
    print(f"{100 * accuracy(model, others):.1f}% of the expressions that it has not seen have the right value.")
    print(f"The loss curve is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
