"""Recurrent networks: a loop over the time steps with one matrix product and a few passes over small arrays each.

The results of a step are written directly to their rows of the output. The passes of a step work on arrays that stay in
the cache. Rows and gates are in the order of :mod:`candelabra.nn._operators.recurrent` and of the files next to
it, which have the equations too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

Ints = tuple[int, ...]


# -- the order of the steps -------------------------------------------------------------------------------------------
def _steps(batch_sizes: Ints, reverse: bool) -> list[tuple[int, int]]:
    """Return the first row and the number of rows of each step, in the order of the recurrence."""
    steps, start = [], 0
    for size in batch_sizes:
        steps.append((start, size))
        start += size
    return steps[::-1] if reverse else steps


def _check(batch_sizes: Ints, *expected: tuple[Any, Ints]) -> None:
    """Raise ``ValueError`` for arrays, or None, that do not have the shapes, which NumPy might broadcast.

    The rules of the operators describe what is wrong. The first array has one row for each sequence and step.
    """
    for array, shape in expected:
        if array is not None and array.shape != shape:
            raise ValueError(f"expected shape {shape}, got {array.shape}")
    if len(expected[0][0]) != sum(batch_sizes) or list(batch_sizes) != sorted(batch_sizes, reverse=True):
        raise ValueError(f"batch sizes {batch_sizes} do not match {len(expected[0][0])} rows")


def _entering(states: Any, before: tuple[int, int], initial: Any, size: int) -> Any:
    """Return the states that enter a step of ``size`` sequences; ``before`` are the rows of the step before."""
    start, count = before
    if count >= size:
        return states[start : start + size]
    if not count:
        return initial[:size]
    return np.concatenate((states[start : start + count], initial[count:size]))


class _StateGradient:
    """The gradient of a state, from the last step of the recurrence to the first."""

    def __init__(self, rows: int, columns: int, dtype: Any) -> None:
        self.of_initial = np.zeros((rows, columns), dtype)
        self.current = np.zeros((rows, columns), dtype)
        """The gradient of the state that the current step left. Rows of sequences that ended there are 0."""

    def entered(self, size: int, before: int) -> None:
        """Go to the step before, which left ``before`` sequences; the rows of the current one are complete."""
        if before < size:
            self.of_initial[before:size] = self.current[before:size]
            self.current[before:size] = 0


def _sigmoid(x: Any) -> None:
    """Replace ``x`` by its sigmoid."""
    np.negative(x, x)
    np.exp(x, x)
    np.add(x, 1, x)
    np.reciprocal(x, x)


def _transposed(weight: Any) -> Any:
    return np.ascontiguousarray(weight.T)


# -- the plain recurrent network --------------------------------------------------------------------------------------
def rnn_sequence(
    projected: Any, hx: Any, weight_hh: Any, bias: Any, batch_sizes: Ints, reverse: bool, relu: bool
) -> Any:
    """The hidden states of all steps."""
    rows, width = projected.shape
    _check(
        batch_sizes, (projected, (rows, width)), (hx, (batch_sizes[0], width)), (weight_hh, (width, width)),
        (bias, (width,)),
    )  # fmt: skip
    hidden, weight = np.empty_like(projected, order="C"), _transposed(weight_hh)
    before = (0, 0)
    for start, size in _steps(batch_sizes, reverse):
        rows = slice(start, start + size)
        sums = np.matmul(_entering(hidden, before, hx, size), weight, out=hidden[rows])
        np.add(sums, projected[rows], sums)
        if bias is not None:
            np.add(sums, bias, sums)
        if relu:
            np.maximum(sums, 0, out=sums)
        else:
            np.tanh(sums, sums)
        before = start, size
    return hidden


def rnn_sequence_backward(
    grad: Any, hidden: Any, hx: Any, weight_hh: Any, batch_sizes: Ints, reverse: bool, relu: bool
) -> tuple[Any, Any]:
    """The gradients of the products of the inputs, and of the initial state."""
    width = hidden.shape[1]
    _check(
        batch_sizes, (grad, hidden.shape), (hx, (batch_sizes[0], width)), (weight_hh, (width, width)),
    )  # fmt: skip
    out, state = np.empty_like(hidden, order="C"), _StateGradient(len(hx), width, hx.dtype)
    slopes = np.empty_like(state.current)
    steps = _steps(batch_sizes, reverse)
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        rows, y, slope = slice(start, start + size), hidden[start : start + size], slopes[:size]
        if relu:
            np.copyto(slope, y > 0)
        else:
            np.multiply(y, y, slope)
            np.subtract(1, slope, slope)
        sums = np.add(grad[rows], state.current[:size], out[rows])
        np.multiply(sums, slope, sums)
        np.matmul(sums, weight_hh, out=state.current[:size])
        state.entered(size, steps[position - 1][1] if position else 0)
    return out, state.of_initial


# -- the LSTM ---------------------------------------------------------------------------------------------------------
def lstm_sequence(
    projected: Any, hx: Any, cx: Any, weight_hh: Any, weight_hr: Any, bias: Any, batch_sizes: Ints, reverse: bool
) -> tuple[Any, Any, Any]:
    """The hidden states, the cells, and the gates i, f, g, o of all steps."""
    count, columns = projected.shape
    width, outputs = columns // 4, hx.shape[1] if weight_hr is None else len(weight_hr)
    _check(
        batch_sizes, (projected, (count, 4 * width)), (hx, (batch_sizes[0], outputs)), (cx, (batch_sizes[0], width)),
        (weight_hh, (4 * width, outputs)), (weight_hr, (outputs, width)), (bias, (columns,)),
    )  # fmt: skip
    if weight_hr is None and outputs != width:
        raise ValueError(f"{outputs} hidden values of {width} cells need a projection")
    gates, cells = np.empty_like(projected, order="C"), np.empty((count, width), cx.dtype)
    hidden = np.empty((count, outputs), hx.dtype)
    weight, scratch = _transposed(weight_hh), np.empty(cx.shape, cx.dtype)
    before = (0, 0)
    for start, size in _steps(batch_sizes, reverse):
        rows, product = slice(start, start + size), scratch[:size]
        sums = np.matmul(_entering(hidden, before, hx, size), weight, out=gates[rows])
        np.add(sums, projected[rows], sums)
        if bias is not None:
            np.add(sums, bias, sums)
        i, f, g, o = (sums[:, k * width : (k + 1) * width] for k in range(4))
        np.tanh(g, product)
        _sigmoid(sums)  # passes over contiguous memory are twice as fast, so g is overwritten, and restored
        np.copyto(g, product)
        cell = np.multiply(f, _entering(cells, before, cx, size), cells[rows])
        np.multiply(i, product, product)
        np.add(cell, product, cell)
        np.tanh(cell, product)
        if weight_hr is None:
            np.multiply(o, product, hidden[rows])
        else:
            np.matmul(np.multiply(o, product, product), weight_hr.T, out=hidden[rows])
        before = start, size
    return hidden, cells, gates


def lstm_sequence_backward(
    gates: Any, cells: Any, cx: Any, weight_hh: Any, weight_hr: Any, grad_hidden: Any, grad_cells: Any,
    grad_gates: Any, batch_sizes: Ints, reverse: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of the products of the inputs, of the initial states, and of the hidden states of all steps."""
    count, columns = gates.shape
    width = columns // 4
    outputs = width if weight_hr is None else len(weight_hr)
    _check(
        batch_sizes, (gates, (count, 4 * width)), (cells, (count, width)), (cx, (batch_sizes[0], width)),
        (weight_hh, (columns, outputs)), (weight_hr, (outputs, width)), (grad_hidden, (count, outputs)),
        (grad_cells, (count, width)), (grad_gates, (count, columns)),
    )  # fmt: skip
    out, totals = np.empty_like(gates, order="C"), np.empty((count, outputs), cx.dtype)
    state, cell = _StateGradient(len(cx), outputs, cx.dtype), _StateGradient(len(cx), width, cx.dtype)
    slopes, tops = np.empty((len(cx), 4 * width), cx.dtype), np.empty(cx.shape, cx.dtype)
    steps = _steps(batch_sizes, reverse)
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        before = steps[position - 1] if position else (0, 0)
        rows, slope, top, dc = slice(start, start + size), slopes[:size], tops[:size], cell.current[:size]
        dh = totals[rows]
        np.copyto(dh, state.current[:size])
        if grad_hidden is not None:
            np.add(dh, grad_hidden[rows], dh)
        dm = dh if weight_hr is None else np.matmul(dh, weight_hr)
        y, ds = gates[rows], out[rows]
        i, f, g, o = (y[:, k * width : (k + 1) * width] for k in range(4))
        di, df, dg, do = (ds[:, k * width : (k + 1) * width] for k in range(4))
        np.tanh(cells[rows], top)
        np.multiply(dm, top, do)
        np.multiply(top, top, top)
        np.subtract(1, top, top)
        np.multiply(top, o, top)
        np.multiply(top, dm, top)
        np.add(dc, top, dc)
        if grad_cells is not None:
            np.add(dc, grad_cells[rows], dc)
        np.multiply(dc, g, di)
        np.multiply(dc, _entering(cells, before, cx, size), df)
        np.multiply(dc, i, dg)
        if grad_gates is not None:
            np.add(ds, grad_gates[rows], ds)
        np.subtract(1, y, slope)
        np.multiply(slope, y, slope)
        np.multiply(g, g, top)
        np.subtract(1, top, slope[:, 2 * width : 3 * width])
        np.multiply(ds, slope, ds)
        np.multiply(dc, f, dc)
        np.matmul(ds, weight_hh, out=state.current[:size])
        state.entered(size, before[1])
        cell.entered(size, before[1])
    return out, state.of_initial, cell.of_initial, totals


# -- the GRU ----------------------------------------------------------------------------------------------------------
def gru_sequence(
    projected: Any, hx: Any, weight_hh: Any, bias: Any, batch_sizes: Ints, reverse: bool
) -> tuple[Any, Any]:
    """The hidden states, and r, z, n and q_n of all steps."""
    count, width = len(projected), hx.shape[1]
    _check(
        batch_sizes, (projected, (count, 3 * width)), (hx, (batch_sizes[0], width)), (weight_hh, (3 * width, width)),
        (bias, (3 * width,)),
    )  # fmt: skip
    gates, hidden = np.empty((count, 4 * width), hx.dtype), np.empty((count, width), hx.dtype)
    weight, products = _transposed(weight_hh), np.empty((len(hx), 3 * width), hx.dtype)
    before = (0, 0)
    for start, size in _steps(batch_sizes, reverse):
        rows, sums = slice(start, start + size), products[:size]
        last = _entering(hidden, before, hx, size)
        np.matmul(last, weight, out=sums)
        if bias is not None:
            np.add(sums, bias, sums)
        p, y, state = projected[rows], gates[rows], hidden[rows]
        rz, n = y[:, : 2 * width], y[:, 2 * width : 3 * width]
        np.copyto(y[:, 3 * width :], sums[:, 2 * width :])
        np.add(sums[:, : 2 * width], p[:, : 2 * width], rz)
        _sigmoid(rz)
        np.multiply(y[:, :width], sums[:, 2 * width :], n)
        np.add(n, p[:, 2 * width :], n)
        np.tanh(n, n)
        np.subtract(last, n, state)
        np.multiply(state, y[:, width : 2 * width], state)
        np.add(state, n, state)
        before = start, size
    return hidden, gates


def gru_sequence_backward(
    gates: Any, hidden: Any, hx: Any, weight_hh: Any, grad_hidden: Any, grad_gates: Any, batch_sizes: Ints,
    reverse: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients of the products of the inputs, of the products with the hidden states, and of the initial state."""
    count, width = hidden.shape
    _check(
        batch_sizes, (gates, (count, 4 * width)), (hidden, (count, width)), (hx, (batch_sizes[0], width)),
        (weight_hh, (3 * width, width)), (grad_hidden, (count, width)), (grad_gates, (count, 4 * width)),
    )  # fmt: skip
    projected, products = (np.empty((count, 3 * width), hidden.dtype) for _ in range(2))
    state, scratch = _StateGradient(len(hx), width, hx.dtype), np.empty((2, *hx.shape), hx.dtype)
    steps = _steps(batch_sizes, reverse)
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        before = steps[position - 1] if position else (0, 0)
        rows, dh, a, b = slice(start, start + size), state.current[:size], scratch[0, :size], scratch[1, :size]
        if grad_hidden is not None:
            np.add(dh, grad_hidden[rows], dh)
        y, dp, dq = gates[rows], projected[rows], products[rows]
        r, z, n, q_n = (y[:, k * width : (k + 1) * width] for k in range(4))
        dp_r, dp_z, dp_n = (dp[:, k * width : (k + 1) * width] for k in range(3))
        dq_n = dq[:, 2 * width :]
        np.subtract(_entering(hidden, before, hx, size), n, dp_z)
        np.multiply(dp_z, dh, dp_z)
        np.subtract(1, z, a)
        np.multiply(a, dh, dp_n)
        if grad_gates is not None:
            np.add(dp_z, grad_gates[rows, width : 2 * width], dp_z)
            np.add(dp_n, grad_gates[rows, 2 * width : 3 * width], dp_n)
        np.multiply(a, z, a)
        np.multiply(dp_z, a, dp_z)
        np.multiply(n, n, b)
        np.subtract(1, b, b)
        np.multiply(dp_n, b, dp_n)
        np.multiply(dp_n, q_n, dp_r)
        np.multiply(dp_n, r, dq_n)
        if grad_gates is not None:
            np.add(dp_r, grad_gates[rows, :width], dp_r)
            np.add(dq_n, grad_gates[rows, 3 * width :], dq_n)
        np.subtract(1, r, a)
        np.multiply(a, r, a)
        np.multiply(dp_r, a, dp_r)
        np.copyto(dq[:, : 2 * width], dp[:, : 2 * width])
        np.multiply(dh, z, a)
        np.matmul(dq, weight_hh, out=dh)
        np.add(dh, a, dh)
        state.entered(size, before[1])
    return projected, products, state.of_initial


# -- kernels ----------------------------------------------------------------------------------------------------------
KERNELS: dict[str, Any] = {kernel.__name__: numpy_kernel(in_float32(kernel)) for kernel in (
    rnn_sequence, rnn_sequence_backward, lstm_sequence, lstm_sequence_backward, gru_sequence, gru_sequence_backward,
)}  # fmt: skip
