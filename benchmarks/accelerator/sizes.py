"""The sizes of the measurements: those of the marks, or tiny ones for tests on any device."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """One set of sizes."""

    elements: int
    """Elements of the input of a bandwidth-bound operator."""
    row: int
    """Elements of its rows."""
    matrix: int
    images: int
    """A batch of 28 x 28 images with one channel."""
    photos: int
    """A batch of photographs."""
    pixels: int
    """Their height and width."""
    width: int
    """Channels of ResNet-18's first stage."""
    sequences: int
    context: int
    """Tokens of a sequence."""
    features: int
    heads: int
    blocks: int
    vocabulary: int
    copies: int
    """Sets of inputs that are used in turn, so that no cache has them."""
    batches: int
    """The number of times whose median is the result."""
    calls: int
    """Calls of a small operator between two readings of the clock: few enough for the queue of a device."""
    blocking: float
    """Seconds of work that keep a device busy while waits are detected."""


SIZES = {
    "full": Sizes(
        elements=1 << 26, row=1024, matrix=8192, images=256, photos=64, pixels=224, width=64, sequences=16,
        context=512, features=512, heads=8, blocks=6, vocabulary=8192, copies=3, batches=15, calls=200, blocking=0.5,
    ),
    "tiny": Sizes(
        elements=1 << 10, row=64, matrix=16, images=2, photos=2, pixels=32, width=4, sequences=1, context=8,
        features=16, heads=2, blocks=1, vocabulary=32, copies=2, batches=2, calls=2, blocking=0.2,
    ),
}  # fmt: skip
