"""The measurements on a device, and the ratios that must hold: candelabra's time / the peer's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.accelerator.models import MODELS
from benchmarks.accelerator.sizes import Sizes
from benchmarks.accelerator.timing import Clock, device_time, host_time
from benchmarks.cases import CASES


class Mark(NamedTuple):
    """One measurement. ``measure(xp, device, sizes, clock)`` returns seconds."""

    name: str
    group: str
    measure: Callable[[Any, str, Sizes, Clock], float]
    most: float | None = None
    """The ratio that must hold."""
    goal: float | None = None
    moved: Callable[[Sizes], int] | None = None
    """For a bandwidth-bound operator, the bytes that it has to read and write. Its mark is a fraction of the bandwidth
    of a copy."""


BANDWIDTH = 0.85
"""The minimum fraction of a copy's bandwidth for a bandwidth-bound operator."""
COPY = "copy"


def _small(setup: str, statement: str) -> Callable[[Any, str, Sizes, Clock], float]:
    """Return the host's time for a small operator of benchmarks/cases.py, its tensors on the device."""

    def measure(xp: Any, device: str, sizes: Sizes, clock: Clock) -> float:
        names: dict[str, Any] = {"xp": xp}
        with xp.device(device):
            exec(setup, names)
        code = compile(statement, statement, "eval")
        return host_time(lambda: eval(code, names), clock, sizes.batches, sizes.calls)

    return measure


def _streaming(
    call: Callable[[Any, list[Any]], object], inputs: int, rows: bool = False
) -> Callable[[Any, str, Sizes, Clock], float]:
    """Return the device's time for an operator on large inputs, with several sets in turn."""

    def measure(xp: Any, device: str, sizes: Sizes, clock: Clock) -> float:
        shape = (sizes.elements // sizes.row, sizes.row) if rows else (sizes.elements,)
        sets = [[xp.rand(*shape, device=device) for _ in range(inputs)] for _ in range(sizes.copies)]
        return device_time(lambda turn: call(xp, sets[turn % len(sets)]), clock, sizes.batches)

    return measure


def _layer_norm(xp: Any, inputs: list[Any]) -> object:
    width = inputs[0].shape[-1]
    return xp.nn.functional.layer_norm(inputs[0], (width,), inputs[1][0], inputs[1][1])


def _product(dtype: str) -> Callable[[Any, str, Sizes, Clock], float]:
    def measure(xp: Any, device: str, sizes: Sizes, clock: Clock) -> float:
        n = sizes.matrix
        sets = [
            [xp.rand(n, n, device=device).to(getattr(xp, dtype)) for _ in range(2)] for _ in range(sizes.copies)
        ]  # fmt: skip
        return device_time(lambda turn: sets[turn % len(sets)][0] @ sets[turn % len(sets)][1], clock, sizes.batches)

    return measure


def _training(model: str) -> Callable[[Any, str, Sizes, Clock], float]:
    def measure(xp: Any, device: str, sizes: Sizes, clock: Clock) -> float:
        step = MODELS[model](xp, device, sizes)
        return device_time(lambda turn: step(), clock, sizes.batches)

    return measure


def _times(count: int) -> Callable[[Sizes], int]:
    return lambda sizes: count * sizes.elements * 4


def _gelu(xp: Any, inputs: list[Any]) -> object:
    return xp.nn.functional.gelu(inputs[0])


MARKS: dict[str, Mark] = {
    mark.name: mark
    for mark in [
        *(
            Mark(case.name, "small operators: time of the host", _small(case.setup, case.statement), 2.0, 1.5)
            for case in CASES
            if case.group == "small operators"
        ),
        Mark(COPY, "bandwidth", _streaming(lambda xp, s: s[0].copy_(s[1]), 2), moved=_times(2)),
        Mark("add", "bandwidth", _streaming(lambda xp, s: s[0] + s[1], 2), moved=_times(3)),
        Mark("gelu", "bandwidth", _streaming(_gelu, 1), moved=_times(2)),
        Mark("softmax", "bandwidth", _streaming(lambda xp, s: xp.softmax(s[0], -1), 1, rows=True), moved=_times(2)),
        Mark("layer_norm", "bandwidth", _streaming(_layer_norm, 2, rows=True), moved=_times(2)),
        Mark("matmul, float32", "products of matrices", _product("float32"), 1 / 0.95),
        Mark("matmul, bfloat16", "products of matrices", _product("bfloat16"), 1 / 0.95),
        *(Mark(f"{name} training step", "training", _training(name), 1.2, 1.0) for name in MODELS),
    ]
}
"""The marks by name."""
