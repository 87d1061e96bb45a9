"""Compare ``jvp`` with the forward pass of public functions, in candelabra and in PyTorch, and with their arithmetic.

Each row has the time of ``jvp`` along a tangent of ``x`` in forward passes of the same library, and the least number of
passes that the arithmetic allows; docs/transforms.md derives it. Times are CPU times; run it with one thread.

Usage: ``OMP_NUM_THREADS=1 python -m benchmarks.tangents [--peer PYTHON] [--only TEXT] [--seconds S] [--json FILE]``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.cases import Case
from benchmarks.processor import LIBRARY
from benchmarks.sides import Side

SETUP = f"""{LIBRARY}
jvp = __import__(xp.__name__ + ".func", fromlist=["func"]).jvp
n = 512
s, v = xp.randn(n, n), xp.rand(n, n)
p = s @ s.mT / n + xp.eye(n)
r = xp.linalg.qr(s)[0] + s * 1e-3
e = p[:256, :256].contiguous()
m, near = xp.randn(1024, 1024), xp.rand(1024, 1024) * 0.1 + 0.95
rows, classes = xp.randn(1 << 16, 16), xp.randint(0, 16, (1 << 16,))
q, k, w = xp.randn(4, 8, 64, 32), xp.randn(4, 8, 64, 32), xp.randn(4, 8, 64, 32)
image, filters = xp.randn(16, 16, 64, 64), xp.randn(16, 16, 3, 3)
"""


class Function(NamedTuple):
    """A function of ``x``, whose value is that of an expression, and the passes that its arithmetic takes."""

    name: str
    text: str
    x: str
    arithmetic: float | None = None


FUNCTIONS = (
    Function("lu_factor, 512²", "xp.linalg.lu_factor(x)[0]", "s", 3),
    Function("lu_factor, 1024²", "xp.linalg.lu_factor(x)[0]", "m", 3),
    Function("cholesky", "xp.linalg.cholesky(x)", "p", 3),
    Function("det", "xp.linalg.det(x)", "r", 3),
    Function("slogdet", "xp.linalg.slogdet(x)[1]", "s", 3),
    Function("solve_triangular, of A", "xp.linalg.solve_triangular(x, v, upper=False)", "p.tril()", 3),
    Function("solve, of A", "xp.linalg.solve(x, v)", "s", 2.5),
    Function("inv", "xp.linalg.inv(x)", "s", 3),
    Function("qr", "xp.linalg.qr(x)[1]", "e"),
    Function("eigh", "xp.linalg.eigh(x)[0]", "e"),
    Function("eigvalsh", "xp.linalg.eigvalsh(x)", "e"),
    Function("svdvals", "xp.linalg.svdvals(x)", "e"),
    Function("eigvals", "xp.linalg.eigvals(x)", "e"),
    Function("matmul", "x @ v", "s", 2),
    Function("conv2d", "F.conv2d(x, filters, padding=1)", "image", 2),
    Function("attention, of the queries", "F.scaled_dot_product_attention(x, k, w)", "q", 2),
    Function("attention, of all", "F.scaled_dot_product_attention(x, x + k, x + w)", "q", 3),
    Function("prod", "x.prod(1)", "near", 2),
    Function("cumprod", "x.cumprod(1)", "near", 2),
    Function("cumsum", "x.cumsum(1)", "m", 2),
    Function("amax", "x.amax(1)", "m", 2),
    Function("var", "x.var(1)", "m", 2),
    Function("norm", "xp.linalg.vector_norm(x, 2, 1)", "m", 2),
    Function("logsumexp", "x.logsumexp(1)", "m", 2),
    Function("softmax", "x.softmax(1)", "m", 2.5),
    Function("log_softmax", "x.log_softmax(1)", "m", 2.5),
    Function("layer_norm", "F.layer_norm(x, (1024,))", "m", 2.5),
    Function("cross_entropy", "F.cross_entropy(x, classes)", "rows", 2),
    Function("exp", "x.exp()", "m", 2.5),
)


class Row(NamedTuple):
    """The seconds of a function and of its ``jvp``, ours and the peer's; the peer's are None if it has none."""

    function: Function
    forward: float
    jvp: float
    peer_forward: float
    peer_jvp: float | None

    @property
    def passes(self) -> float:
        return self.jvp / self.forward

    @property
    def peer_passes(self) -> float | None:
        return None if self.peer_jvp is None else self.peer_jvp / self.peer_forward


def measure(function: Function, own: Side, peer: Side, seconds: float) -> Row:
    """Return the best times of two turns of each side, alternately."""
    setup = f"{SETUP}\nx = {function.x}\nt = xp.randn(*x.shape)\nf = lambda x: {function.text}\n"
    forward, along = (Case(function.name, call, setup) for call in ("f(x)", "jvp(f, (x,), (t,))"))
    supported = peer.runs(along, 60)
    times = [
        (own.time(forward, seconds), own.time(along, seconds), peer.time(forward, seconds),
         peer.time(along, seconds) if supported else 0.0)
        for _ in range(2)
    ]  # fmt: skip
    best = [min(each) for each in zip(*times, strict=True)]
    return Row(function, *best[:3], best[3] if supported else None)


def show(rows: list[Row]) -> None:
    """Print the table."""
    table = Table("function", "forward, µs", "jvp, µs", "passes", "arithmetic", "PyTorch's passes", "PyTorch's jvp, µs")
    for row in rows:
        arithmetic, theirs = row.function.arithmetic, row.peer_passes
        table.add_row(
            row.function.name, f"{row.forward * 1e6:.0f}", f"{row.jvp * 1e6:.0f}", f"{row.passes:.2f}",
            "" if arithmetic is None else f"{arithmetic:g}",
            "none" if theirs is None else f"{theirs:.2f}", "" if row.peer_jvp is None else f"{row.peer_jvp * 1e6:.0f}",
        )  # fmt: skip
    Console(width=110).print(table)


def main() -> None:
    """Measure and print, and with ``--json`` write the times to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch")
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.25, help="time for each figure")
    parser.add_argument("--json", help="write the times to this file")
    arguments = parser.parse_args()
    own, peer = Side(sys.executable, "candelabra", cpu_time=True), Side(arguments.peer, "torch", cpu_time=True)
    rows = [measure(f, own, peer, arguments.seconds) for f in FUNCTIONS if arguments.only in f.name]
    own.close()
    peer.close()
    show(rows)
    if arguments.json:
        written = [{**row._asdict(), "function": row.function.name} for row in rows]
        Path(arguments.json).write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
