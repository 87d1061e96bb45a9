"""How large what is measured is: as the marks say, or so small that any device has done it at once."""

from __future__ import annotations

from typing import NamedTuple


class Sizes(NamedTuple):
    """One size of everything."""

    elements: int
    """Of a bandwidth-bound operator's input."""
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
    """Sets of inputs that take turns, so that a cache holds none of them."""
    batches: int
    """Times of which the median is taken."""
    calls: int
    """Calls of a small operator between two looks at the clock: few enough for a device's queue to take them all."""
    blocking: float
    """Seconds of work that a device is given before it is looked who waits for it."""


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
