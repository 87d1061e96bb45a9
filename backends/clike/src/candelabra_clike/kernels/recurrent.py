"""Steps of recurrent networks: one launch in place of one for each of some twenty operators."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.templates.gate_steps import GRU, LSTM, GateStep, gru_backward, lstm_backward


@lru_cache(None)
def compiled(engine: Engine, step: GateStep, d: dtype) -> Launch:
    """Return the compiled kernel of a step."""
    return engine.compile(step.source(d, engine.traits.serial))


def run(step: GateStep, *arrays: StridedArray) -> tuple[StridedArray, ...]:
    """Return what a step writes. The state is the array with one part that the step reads first.

    Raises ``ValueError`` if the shapes do not match.
    """
    state = next(a for a, (_, parts) in zip(arrays, step.read, strict=True) if parts == 1)
    if len(state.shape) != 2:
        raise ValueError(f"{step.name}: expected a matrix, got shape {state.shape}")
    rows, width = state.shape
    for a, (name, parts) in zip(arrays, step.read, strict=True):
        if a.shape != (rows, parts * width):
            raise ValueError(f"{step.name}: expected {name} of shape {(rows, parts * width)}, got {a.shape}")
    engine = state.engine
    out = tuple(engine.empty((rows, parts * width), state.dtype) for _, parts in step.written)
    if rows * width:
        whole = [contiguous(a) for a in arrays]
        count = rows if engine.traits.serial else rows * width
        launch = compiled(engine, step, state.dtype)
        launch(count, *[a.buffer for a in (*out, *whole)], *[a.offset for a in whole], width)
    return out


class RealKernel:
    """A kernel for float32 and float64. Half types are left to the composite, which rounds after each operation."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def for_dtype(self, d: dtype) -> Any:
        """Return the function for a dtype, or None."""
        return self.function if d in (float32, float64) else None

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def _lstm_step_backward(*args: Any) -> tuple[StridedArray, ...]:
    """The gradients of one step of an LSTM; the gradients of the cell and of the gates may be None."""
    return run(lstm_backward(args[4] is not None, args[5] is not None), *[a for a in args if a is not None])


def _gru_step_backward(*args: Any) -> tuple[StridedArray, ...]:
    """The gradients of one step of a GRU; the gradient of the gates may be None."""
    return run(gru_backward(args[3] is not None), *[a for a in args if a is not None])


KERNELS: dict[str, Any] = {
    "lstm_step": RealKernel(lambda sums, last: run(LSTM, sums, last)),
    "lstm_step_backward": RealKernel(_lstm_step_backward),
    "gru_step": RealKernel(lambda projected, products, last: run(GRU, projected, products, last)),
    "gru_step_backward": RealKernel(_gru_step_backward),
}
