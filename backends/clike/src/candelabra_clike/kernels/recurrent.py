"""Steps of recurrent networks, one launch in place of one for each of some twenty operators.

On processors whole sequences, with one launch for each step and its product.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous, fill_function
from candelabra_clike.kernels.reductions import of_single_and_double
from candelabra_clike.templates import recurrences
from candelabra_clike.templates.gate_steps import GRU, LSTM, GateStep, gru_backward, lstm_backward
from candelabra_clike.templates.matmul.matmul import matmul_kernel
from candelabra_clike.templates.recurrences import Recurrence


@lru_cache(None)
def compiled(engine: Engine, step: GateStep | Recurrence, d: dtype) -> Launch:
    """Return the compiled kernel of a step."""
    traits = engine.traits
    if isinstance(step, Recurrence):
        return engine.compile(step.source(d, traits.lanes, traits.registers))
    return engine.compile(step.source(d, traits.serial))


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


def _lstm_step_backward(*args: Any) -> tuple[StridedArray, ...]:
    """The gradients of one step of an LSTM; the gradients of the cell and of the gates may be None."""
    return run(lstm_backward(args[4] is not None, args[5] is not None), *[a for a in args if a is not None])


def _gru_step_backward(*args: Any) -> tuple[StridedArray, ...]:
    """The gradients of one step of a GRU; the gradient of the gates may be None."""
    return run(gru_backward(args[3] is not None), *[a for a in args if a is not None])


# -- sequences --------------------------------------------------------------------------------------------------------
Sizes = tuple[int, ...]
Rows = tuple[int, int]
"""The first row of a step, and the number of its rows."""
ITEMS = 16
"""The work-items of a step that are worth dividing its rows."""
LEAST_ROWS = 24
"""The rows of a work-item that are worth another one."""


def steps_of(batch_sizes: Sizes, reverse: bool) -> list[Rows]:
    """Return the rows of each step, in the order of the recurrence."""
    steps, start = [], 0
    for size in batch_sizes:
        steps.append((start, size))
        start += size
    return steps[::-1] if reverse else steps


def serves(array: StridedArray, batch_sizes: Sizes, *expected: tuple[StridedArray | None, Shape]) -> bool:
    """Return whether a recurrence can run as one kernel per step: on processors, with arrays of these shapes.

    ``array`` has a row for each step and sequence. What is wrong with other shapes is said by the operator's rule.
    """
    return (
        array.engine.traits.serial
        and len(array.shape) == 2
        and array.shape[0] == sum(batch_sizes) > 0
        and array.shape[1] > 0
        and list(batch_sizes) == sorted(batch_sizes, reverse=True)
        and all(a is None or a.shape == shape for a, shape in expected)
    )


def packed(weight: StridedArray, step: Recurrence) -> StridedArray:
    """Return ``weight_hh`` (gates * width, width), packed for the products of a step.

    A step has a sum for each gate, of products with a state, or one sum, of products with the gradients of all gates.
    """
    row, column = weight.strides
    rows, width = weight.shape
    engine, depth = weight.engine, rows if step.gradient else width
    steps = (0, column, row) if step.gradient else (width * row, row, column)
    blocks = -(-width // step.units)
    out = engine.empty((blocks * depth * step.sums * step.units,), weight.dtype)
    launch = engine.compile(recurrences.packing(weight.dtype, step.units))
    launch(blocks, out.buffer, weight.buffer, weight.offset, step.sums, *steps, width, depth)
    return out


def zeros(engine: Engine, shape: Shape, d: dtype) -> StridedArray:
    """Return an array of zeros."""
    return fill_function(d)(engine.empty(shape, d), 0)


class StepLaunch:
    """The launches of a recurrence: the arrays stay, the rows change."""

    def __init__(
        self, step: Recurrence, arrays: list[StridedArray], x: list[StridedArray], weight: StridedArray
    ) -> None:
        """Take the arrays in the order of the parameters, with ``x`` the factor of the products with ``weight``."""
        weights, width = packed(weight, step), weight.shape[1]
        engine, d = weight.engine, weight.dtype
        written = iter([a.written for each in step.arrays for a in (each, *[each] * (each.rows == "entering"))])
        offsets = [a.offset for a in arrays if not next(written)]
        every = [*arrays, *x, weights]
        self._launch = compiled(engine, step, d)
        self._fixed = (*[a.buffer for a in every], *offsets, *[a.offset for a in (*x, weights)], width, x[0].shape[1])
        self._blocks = -(-width // step.units)

    def __call__(self, rows: Rows, before: Rows, x_before: Rows) -> None:
        """Compute the rows of a step. States enter it from the rows ``before``, and products from ``x_before``."""
        start, size = rows
        if size:
            parts = max(1, min(size // LEAST_ROWS, -(-ITEMS // self._blocks)))
            self._launch(
                self._blocks * parts, *self._fixed, parts, start, size, before[0], min(before[1], size),
                x_before[0], min(x_before[1], size),
            )  # fmt: skip


def forward(
    step: Recurrence, arrays: list[StridedArray], x: list[StridedArray], weight: StridedArray, steps: list[Rows]
) -> None:
    """Run the steps in order. The arguments but the last are those of :class:`StepLaunch`."""
    launch, before = StepLaunch(step, arrays, x, weight), (0, 0)
    for rows in steps:
        launch(rows, before, before)
        before = rows


def backward(
    step: Recurrence, arrays: list[StridedArray], ds: StridedArray, weight: StridedArray, state: StridedArray,
    steps: list[Rows],
) -> None:  # fmt: skip
    """Run the steps from the last to the first.

    Products are those of ``ds``, the gradients of the gates, with ``weight``; after the last step these are 0. Add them
    to the gradient of the initial state, for the sequences that begin in a step.
    """
    launch = StepLaunch(step, arrays, [ds, zeros(ds.engine, (state.shape[0], ds.shape[1]), ds.dtype)], weight)
    add = matmul_kernel(weight.dtype, True)
    later = (0, 0)
    for rows, before in pairwise([*steps[::-1], (0, 0), (0, 0)]):
        launch(rows, before, later)
        (start, count), size = later, rows[1]
        if count > size:
            begun = _rows(state, size, count - size)
            add(begun, _rows(ds, start + size, count - size), weight, begun, 1.0, 1.0)
        later = rows


def _rows(array: StridedArray, first: int, count: int) -> StridedArray:
    """Return rows of a contiguous matrix."""
    columns = array.shape[1]
    return array.restrided((count, columns), (columns, 1), array.offset + first * columns)


def rnn_sequence(
    projected: StridedArray, hx: StridedArray, weight_hh: StridedArray, bias: StridedArray | None, batch_sizes: Sizes,
    reverse: bool, relu: bool,
) -> Any:  # fmt: skip
    """The hidden states of all steps."""
    width = projected.shape[-1]
    state, square = (batch_sizes[0], width), (width, width)
    if not serves(projected, batch_sizes, (hx, state), (weight_hh, square), (bias, (width,))):
        return NotImplemented
    engine, d = projected.engine, projected.dtype
    hidden = engine.empty(projected.shape, d)
    arrays = [hidden, contiguous(projected), *([] if bias is None else [contiguous(bias)])]
    step, x = recurrences.rnn(bias is not None, relu), [hidden, contiguous(hx)]
    forward(step, arrays, x, weight_hh, steps_of(batch_sizes, reverse))
    return hidden


def rnn_sequence_backward(
    grad: StridedArray, hidden: StridedArray, hx: StridedArray, weight_hh: StridedArray, batch_sizes: Sizes,
    reverse: bool, relu: bool,
) -> Any:  # fmt: skip
    """The gradients of the products of the inputs, and of the initial state."""
    width = hidden.shape[-1]
    state = (batch_sizes[0], width)
    if not serves(hidden, batch_sizes, (grad, hidden.shape), (hx, state), (weight_hh, (width, width))):
        return NotImplemented
    engine, d = hidden.engine, hidden.dtype
    ds, initial = engine.empty(hidden.shape, d), zeros(engine, state, d)
    arrays = [ds, contiguous(hidden), contiguous(grad)]
    backward(recurrences.rnn_gradient(relu), arrays, ds, weight_hh, initial, steps_of(batch_sizes, reverse))
    return ds, initial


def lstm_sequence(
    projected: StridedArray, hx: StridedArray, cx: StridedArray, weight_hh: StridedArray,
    weight_hr: StridedArray | None, bias: StridedArray | None, batch_sizes: Sizes, reverse: bool,
) -> Any:  # fmt: skip
    """The hidden states, the cells, and the gates i, f, g, o of all steps. Declines projections of hidden states."""
    count, columns = projected.shape[0], projected.shape[-1]
    width = columns // 4
    state = (batch_sizes[0], width)
    expected = (projected, (count, 4 * width)), (hx, state), (cx, state), (weight_hh, (columns, width))
    if weight_hr is not None or not serves(projected, batch_sizes, *expected, (bias, (columns,))):
        return NotImplemented
    engine, d = projected.engine, projected.dtype
    hidden, cells = (engine.empty((count, width), d) for _ in range(2))
    gates = engine.empty(projected.shape, d)
    arrays = [hidden, cells, gates, contiguous(projected), cells, contiguous(cx)]
    arrays += [] if bias is None else [contiguous(bias)]
    step, x = recurrences.lstm(bias is not None), [hidden, contiguous(hx)]
    forward(step, arrays, x, weight_hh, steps_of(batch_sizes, reverse))
    return hidden, cells, gates


def lstm_sequence_backward(
    gates: StridedArray, cells: StridedArray, cx: StridedArray, weight_hh: StridedArray,
    weight_hr: StridedArray | None, grad_hidden: StridedArray | None, grad_cells: StridedArray | None,
    grad_gates: StridedArray | None, batch_sizes: Sizes, reverse: bool,
) -> Any:  # fmt: skip
    """The gradients of the products of the inputs, of the initial states, and of the hidden states of all steps."""
    count, columns = gates.shape[0], gates.shape[-1]
    width = columns // 4
    state, rows = (batch_sizes[0], width), (count, width)
    expected = (
        (gates, (count, 4 * width)), (cells, rows), (cx, state), (weight_hh, (columns, width)), (grad_hidden, rows),
        (grad_cells, rows), (grad_gates, gates.shape),
    )  # fmt: skip
    if weight_hr is not None or not serves(gates, batch_sizes, *expected):
        return NotImplemented
    engine, d = gates.engine, gates.dtype
    ds, totals = engine.empty(gates.shape, d), engine.empty(rows, d)
    initial, carry = zeros(engine, state, d), zeros(engine, state, d)
    given = [grad_hidden, grad_cells, grad_gates]
    step = recurrences.lstm_gradient(*[g is not None for g in given])
    whole = contiguous(cells)
    arrays = [ds, totals, carry, contiguous(gates), whole, whole, contiguous(cx)]
    arrays += [contiguous(g) for g in given if g is not None]
    backward(step, arrays, ds, weight_hh, initial, steps_of(batch_sizes, reverse))
    return ds, initial, carry, totals


def gru_sequence(
    projected: StridedArray, hx: StridedArray, weight_hh: StridedArray, bias: StridedArray | None, batch_sizes: Sizes,
    reverse: bool,
) -> Any:  # fmt: skip
    """The hidden states, and r, z, n and q_n of all steps."""
    count, columns = projected.shape[0], projected.shape[-1]
    width = columns // 3
    expected = (projected, (count, 3 * width)), (hx, (batch_sizes[0], width)), (weight_hh, (columns, width))
    if not serves(projected, batch_sizes, *expected, (bias, (columns,))):
        return NotImplemented
    engine, d = projected.engine, projected.dtype
    hidden, gates = engine.empty((count, width), d), engine.empty((count, 4 * width), d)
    begin = contiguous(hx)
    arrays = [hidden, gates, contiguous(projected), hidden, begin, *([] if bias is None else [contiguous(bias)])]
    forward(recurrences.gru(bias is not None), arrays, [hidden, begin], weight_hh, steps_of(batch_sizes, reverse))
    return hidden, gates


def gru_sequence_backward(
    gates: StridedArray, hidden: StridedArray, hx: StridedArray, weight_hh: StridedArray,
    grad_hidden: StridedArray | None, grad_gates: StridedArray | None, batch_sizes: Sizes, reverse: bool,
) -> Any:  # fmt: skip
    """The gradients of the products of the inputs, of the products with the hidden states, and of the initial state."""
    count, width = hidden.shape[0], hidden.shape[-1]
    state, columns = (batch_sizes[0], width), 3 * width
    expected = (
        (gates, (count, 4 * width)), (hx, state), (weight_hh, (columns, width)), (grad_hidden, hidden.shape),
        (grad_gates, (count, 4 * width)),
    )  # fmt: skip
    if not serves(hidden, batch_sizes, *expected):
        return NotImplemented
    engine, d = hidden.engine, hidden.dtype
    dp, dq = (engine.empty((count, columns), d) for _ in range(2))
    carry, given = zeros(engine, state, d), [grad_hidden, grad_gates]
    step = recurrences.gru_gradient(*[g is not None for g in given])
    arrays = [dp, dq, carry, contiguous(gates), contiguous(hidden), contiguous(hx)]
    arrays += [contiguous(g) for g in given if g is not None]
    backward(step, arrays, dq, weight_hh, carry, steps_of(batch_sizes, reverse))
    return dp, dq, carry


KERNELS: dict[str, Any] = {
    "lstm_step": of_single_and_double(lambda sums, last: run(LSTM, sums, last)),
    "lstm_step_backward": of_single_and_double(_lstm_step_backward),
    "gru_step": of_single_and_double(lambda projected, products, last: run(GRU, projected, products, last)),
    "gru_step_backward": of_single_and_double(_gru_step_backward),
} | {kernel.__name__: of_single_and_double(kernel) for kernel in (
    rnn_sequence, rnn_sequence_backward, lstm_sequence, lstm_sequence_backward, gru_sequence, gru_sequence_backward,
)}  # fmt: skip
