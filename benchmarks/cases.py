"""The measured cases. A case is a setup and a statement over ``xp``, which is candelabra or its peer, PyTorch.

The names of both libraries are equal, so they share the text. ``mark`` is the ratio that must hold, ``goal`` the
desired one (candelabra's time / the peer's time).
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """One measurement."""

    name: str
    statement: str
    setup: str = ""
    mark: float | None = None
    goal: float | None = None
    group: str = "small operators"
    prepare: str = ""
    """A statement before each batch of calls, which is not timed."""
    batches: int = 4
    """The number of batches in a turn, of which the fastest one is the result."""


VECTORS = "a, b = xp.ones(8), xp.ones(8); ga = xp.ones(8, requires_grad=True)"
MATRICES = "m = xp.ones(8, 8); gm = xp.ones(8, 8, requires_grad=True)"
CHAIN = """
def chain(step):
    x = ga
    for _ in range(1000):
        x = step(x)
    x.sum().backward()
"""
RECURRENT = """
nn = __import__(xp.__name__ + '.nn', fromlist=['nn'])
network, sequence = nn.LSTM(256, 256, 2), xp.randn(100, 32, 256)
def unroll():
    network.zero_grad()
    network(sequence)[0].sum().backward()
"""
LARGE = "w = xp.ones(1024, 1024)"


def _both(name: str, plain: str, graded: str, setup: str) -> list[Case]:
    return [
        Case(name, plain, setup, 1.0, 0.6),
        Case(f"{name}, with grad", graded, setup, 1.0, 0.6),
    ]


CASES: list[Case] = [
    *_both("a + b", "a + b", "ga + b", VECTORS),
    *_both("a * 2.0", "a * 2.0", "ga * 2.0", VECTORS),
    *_both("a[2]", "a[2]", "ga[2]", VECTORS),
    *_both("m.t()", "m.t()", "gm.t()", MATRICES),
    *_both("m.transpose(0, 1)", "m.transpose(0, 1)", "gm.transpose(0, 1)", MATRICES),
    *_both("m @ m", "m @ m", "gm @ m", MATRICES),
    Case("(a*b+b).sum().backward()", "(ga * b + b).sum().backward()", VECTORS, 0.7, 0.4, "small graphs"),
    Case("1,000 additions and back", "chain(lambda x: x + b)", VECTORS + CHAIN, 0.7, 0.4, "small graphs"),
    Case("1,000 products and back", "chain(lambda x: x * b)", VECTORS + CHAIN, 0.7, 0.4, "small graphs"),
    Case("1,000 tanh and back", "chain(lambda x: x.tanh())", VECTORS + CHAIN, None, 0.7, "small graphs"),
    Case("w @ w, 1024 x 1024", "w @ w", LARGE, None, 1.1, "large operators"),
]
