"""Measure ``jvp`` of each operator that has a tangent rule, and print its time in forward passes of the same operator.

The operators are those of the registry: a new one needs a line in :data:`SPECIAL` only if no form here fits it.
``jvp`` is measured along the tangent of the first floating argument, and along those of all of them. Times are CPU
times of this process, the smallest of several batches. With the environment variable ``OMP_NUM_THREADS=1`` they are
those of one thread.

Usage: ``OMP_NUM_THREADS=1 python -m benchmarks.forward_mode [--only TEXT] [--kind KIND] [--seconds S] [--json FILE]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import candelabra as cd
import candelabra.nn
from candelabra._transforms.tangent_rules import kind_of
from candelabra.func import jvp
from candelabra.library import OPERATORS
from rich.console import Console
from rich.table import Table

MARK = 2.5
"""The largest time of ``jvp`` that is aimed at, in forward passes."""
RULES = ("declared", "pointwise", "linear", "reduction", "view")
"""The kinds of tangent rules. Composites without one, ``body``, run their body, and are as good as their parts."""
SETUP = """
cd.manual_seed(0)
n = 1 << 20
x, y, z = (cd.rand(n) * 0.8 + 0.1 for _ in range(3))
m, w = cd.rand(1024, 1024) + 0.5, cd.rand(1024, 1024)
k = cd.randint(0, 1024, (1024, 1024))
p, u, d = cd.rand(256, 256), cd.rand(256, 256), cd.rand(256)
c = cd.complex(x, y)
b, v = cd.randn(512, 512), cd.rand(512, 512)
a, r = b @ b.mT / 512 + cd.eye(512), cd.linalg.qr(b)[0] + b * 1e-3
s, e = b[:128, :128].contiguous(), a[:256, :256].contiguous()
scores, labels = cd.rand(1 << 16, 16), cd.randint(0, 16, (1 << 16,))
t = cd.rand(64, 64, 64)
image, filters = cd.rand(16, 16, 64, 64), cd.rand(16, 16, 3, 3)
q = cd.rand(4, 8, 64, 32)
rows, starts = cd.randint(0, 1024, (1024,)), cd.arange(0, 1024, 8)
plane, sizes = cd.randint(0, 8192, (16, 16, 4096)), ((1, 1), (1, 1), (1, 1), 1)
"""
FORMS = (
    "x", "x, y", "x, y, z", "m, (1,)", "m, 1", "m, w", "c", "a", "a, v", "t, t", "m, x[0]", "m, 0, k", "m, 0, k, w",
    "m, (1024 * 1024,)", "m, (1, 0)", "m, 0, 1", "m, 0, rows", "m, rows, w", "[m, w]", "m, 8, 1", "m, 0, 8, 4",
)  # fmt: skip
"""Arguments to try, the most common first."""
SPECIAL = {
    "cat": "[m, w], 0", "amax": "m, (1,)", "amin": "m, (1,)", "sum": "m, (1,)", "mean": "m, (1,)", "var": "m, (1,)",
    "std": "m, (1,)", "var_mean": "m, (1,)", "std_mean": "m, (1,)", "linalg_vector_norm": "m, 2, (1,)", "sort": "m",
    "mode": "m[:64]", "median_all": "x", "nanmedian_all": "x", "linalg_det": "r", "linalg_slogdet": "b",
    "linalg_svd": "s", "linalg_svdvals": "s", "linalg_eigh": "e", "linalg_eigvalsh": "e", "linalg_eig": "s",
    "linalg_eigvals": "s", "linalg_qr": "s", "linalg_inv_ex": "b", "linalg_cholesky_ex": "a",
    "random_log_gamma": "m[:64], 0, 1", "random_poisson": "m[:64], 0, 1", "log_softmax": "m, 1", "softmax": "m, 1",
    "matmul": "p, u", "addmm": "p, u, p", "addmv": "x[:1024], m, y[:1024]", "addr": "m, x[:1024], y[:1024]",
    "baddbmm": "t, t, t", "addbmm": "t[0], t, t", "cross_product": "cd.rand(1 << 16, 3), cd.rand(1 << 16, 3), 1",
    "where": "x > 0.5, y, z", "conv": "image, filters, None, *sizes", "linear": "p, u, d",
    "embedding": "m, rows, -1, False", "triangular_solution": "a, v, False, False", "linalg_lu_factor_ex": "b",
    "linalg_lstsq": "b[:, :128], v, 1e-6, 'gelsy'", "attention": "q, q + 1, q + 2, None, False, 0.2",
    "median_dim": "p, 1", "nanmedian_dim": "p, 1", "topk": "m, 8", "mean_class_loss": "scores, labels, -100",
    "kthvalue": "p, 3", "normalize": "m, None, None, (1,), 1e-5", "scatter_extreme": "m, 0, k, w, 'amax', True",
    "scatter_add": "m, 0, k, w", "scatter_src": "m, 0, k, w", "gather": "m, 0, k",
    "index_select": "m, 0, rows", "pow": "x, y", "prod": "m * 0.1 + 0.9, (1,)", "cumprod": "m * 0.1 + 0.9, 1",
    "diagonal_scatter": "m, x[:1024]", "expand": "d, (1024, 256)", "view": "m, (1024 * 1024,)",
    "permute": "m, (1, 0)", "frexp": "x", "as_strided": "m, (1024, 1024), (1, 1024)", "unfold": "m, 1, 8, 4",
    "flip": "m, (1,)", "erfinv": "x", "logit": "x", "fft_c2c": "c, (0,), 'backward', True",
    "fft_r2c": "x, (0,), 'backward', True",
    "fft_c2r": "c, (0,), 'backward', 2 * (n - 1)", "linalg_solve_ex": "b, v",
    "resample": "image, 2, cd.arange(128) // 2 % 63, cd.rand(128, 2)", "filled": "x, 2.0",
    "class_losses": "scores, labels, -100",
    "scatter_planes": "image.flatten(2), plane, 8192, False", "put_planes": "image.flatten(2), plane, 8192",
    "index": "m, (rows,)", "index_put": "m, (rows,), w", "index_add": "m, 0, rows, w",
    "basic_index_scatter": "m, w[:512], (slice(0, 512, 1),)", "conv_weight": "image, image, (16, 16, 3, 3), *sizes",
    "conv_input": "image, filters, (16, 16, 64, 64), *sizes", "bag_sums": "m, rows, starts, None, False, False",
    "pad_around": "image, (1, 1, 1, 1), 'reflect'", "sum_pool": "image, (2, 2), (2, 2), (0, 0), (1, 1), (32, 32)",
    "affine_grid_generator": "cd.rand(64, 2, 3), (64, 1, 128, 128), False",
    "max_pool": "image, (2, 2), (2, 2), (0, 0), (1, 1), (32, 32)",
}  # fmt: skip
"""The arguments of operators for which the first form that works is not the typical one."""


class Row(NamedTuple):
    """The times of one operator in seconds."""

    name: str
    kind: str
    arguments: str
    forward: float
    jvp: float
    all: float

    @property
    def passes(self) -> float:
        return self.jvp / self.forward


def best_time(call: Callable[[], Any], seconds: float) -> float:
    """Return the smallest mean CPU time of a call over batches that fill ``seconds``."""
    start = time.process_time()
    call()
    took = time.process_time() - start
    count = max(1, int(seconds / 8 / max(took, 1e-7)))
    best = took
    while time.process_time() - start < seconds:
        begin = time.process_time()
        for _ in range(count):
            call()
        best = min(best, (time.process_time() - begin) / count)
    return best


@cache
def tensors() -> dict[str, Any]:
    """Return the names of :data:`SETUP`."""
    names: dict[str, Any] = {"cd": cd}
    exec(SETUP, names)
    return names


def calls(op: Any, arguments: str) -> list[Callable[[], Any]]:
    """Return the operator, and ``jvp`` of it along the first and along all floating arguments, as calls."""
    args = list(eval(f"({arguments},)", tensors()))
    positions = [i for i, arg in enumerate(args) if _differentiable(arg)]
    return [lambda: op(*args), *[derivative(op, args, part) for part in (positions[:1], positions)]]


def derivative(op: Any, args: list[Any], positions: list[int]) -> Callable[[], Any]:
    """Return ``jvp`` of an operator along the arguments at some positions, as a call."""
    primals = tuple([args[i] for i in positions])
    tangents = cd.utils._pytree.tree_map(cd.rand_like, primals)

    def function(*chosen: Any) -> Any:
        values = list(args)
        for position, value in zip(positions, chosen, strict=True):
            values[position] = value
        out = op(*values)
        return tuple([o for o in out if o.is_floating_point() or o.is_complex()]) if isinstance(out, tuple) else out

    return lambda: jvp(function, primals, tangents)


def _differentiable(arg: Any) -> bool:
    if isinstance(arg, list):
        return all(map(_differentiable, arg))
    return isinstance(arg, cd.Tensor) and (arg.is_floating_point() or arg.is_complex())


def form_of(op: Any) -> str | None:
    """Return the first arguments that an operator accepts with tangents, or None."""
    for form in (SPECIAL[op.name],) if op.name in SPECIAL else FORMS:
        try:
            for call in calls(op, form):
                call()
        except Exception:
            continue
        return form
    return None


def measure(only: str, kinds: tuple[str, ...], seconds: float) -> tuple[list[Row], list[str]]:
    """Return a row for each operator, slowest first, and the names of those that no form fits."""
    found, unmeasured = [], []
    for name, op in OPERATORS.items():
        kind = kind_of(op)
        if only not in name or kind not in kinds or name.endswith(("_backward", "_adjoint")) or name.startswith("c10d"):
            continue
        form = form_of(op)
        if form is None:
            unmeasured.append(name)
            continue
        found.append(Row(name, kind, form, *[best_time(call, seconds) for call in calls(op, form)]))
    return sorted(found, key=lambda row: -row.passes), unmeasured


def show(rows: list[Row], unmeasured: list[str]) -> None:
    """Print the table."""
    table = Table("operator", "rule", "arguments", "forward, µs", "jvp, µs", "passes", "all tangents")
    for row in rows:
        colour = "green" if row.passes <= MARK else "red"
        times = (
            f"{row.forward * 1e6:.1f}",
            f"{row.jvp * 1e6:.1f}",
            f"[{colour}]{row.passes:.2f}[/]",
            f"{row.all / row.forward:.2f}",
        )
        table.add_row(row.name, row.kind, row.arguments.replace("[", r"\["), *times)
    Console(width=120).print(table)
    above = sum(row.passes > MARK for row in rows)
    print(f"{len(rows)} operators, {above} above {MARK} passes; no arguments fit {', '.join(unmeasured) or 'none'}")


def main() -> None:
    """Measure and print, and with ``--json`` write the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--kind", choices=(*RULES, "body"), help="operators with this kind of rule")
    parser.add_argument("--seconds", type=float, default=0.1, help="CPU time for each figure")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    rows, unmeasured = measure(arguments.only, (arguments.kind,) if arguments.kind else RULES, arguments.seconds)
    show(rows, unmeasured)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
