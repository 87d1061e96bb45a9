"""Recurrent networks by definition, one sequence after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def _sequences(batch_sizes: Ints, reverse: bool) -> Iterator[tuple[int, list[int]]]:
    """Yield the number of each sequence, and its rows in the order of the recurrence."""
    starts = np.cumsum([0, *batch_sizes[:-1]])
    for number in range(batch_sizes[0]):
        rows = [int(start) + number for start, size in zip(starts, batch_sizes, strict=True) if size > number]
        yield number, rows[::-1] if reverse else rows


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        out: Array = 1 / (1 + np.exp(-x))
    return out


# -- the recurrences --------------------------------------------------------------------------------------------------
@reference("rnn_sequence")
def rnn_sequence(
    x: Array, hx: Array, w: Array, bias: Array | None, batch_sizes: Ints, reverse: bool, relu: bool
) -> Array:
    """Apply the nonlinearity to the sum of both products and the bias."""
    hidden = np.zeros_like(x)
    for number, rows in _sequences(batch_sizes, reverse):
        h = hx[number]
        for row in rows:
            total = x[row] + w @ h + (0 if bias is None else bias)
            h = hidden[row] = np.maximum(total, 0) if relu else np.tanh(total)
    return hidden


@reference("rnn_sequence_backward")
def rnn_sequence_backward(
    g: Array, hidden: Array, hx: Array, w: Array, batch_sizes: Ints, reverse: bool, relu: bool
) -> tuple[Array, Array]:
    """Propagate the gradient of each sequence from its last step to its first."""
    to_x, to_h = np.zeros_like(hidden), np.zeros_like(hx)
    for number, rows in _sequences(batch_sizes, reverse):
        for row in rows[::-1]:
            slope = (hidden[row] > 0) if relu else 1 - hidden[row] ** 2
            to_x[row] = (g[row] + to_h[number]) * slope
            to_h[number] = w.T @ to_x[row]
    return to_x, to_h


@reference("lstm_sequence")
def lstm_sequence(
    x: Array, hx: Array, cx: Array, w: Array, wr: Array | None, bias: Array | None, batch_sizes: Ints, reverse: bool
) -> tuple[Array, Array, Array]:
    """Compute gates, cell and hidden state of each step."""
    hidden, cells, gates = np.zeros((len(x), hx.shape[1]), x.dtype), np.zeros((len(x), cx.shape[1]), x.dtype), 0 * x
    for number, rows in _sequences(batch_sizes, reverse):
        h, c = hx[number], cx[number]
        for row in rows:
            s_i, s_f, s_g, s_o = np.split(x[row] + w @ h + (0 if bias is None else bias), 4)
            i, f, g, o = _sigmoid(s_i), _sigmoid(s_f), np.tanh(s_g), _sigmoid(s_o)
            c = cells[row] = f * c + i * g
            h = hidden[row] = o * np.tanh(c) if wr is None else wr @ (o * np.tanh(c))
            gates[row] = np.concatenate((i, f, g, o))
    return hidden, cells, gates


@reference("lstm_sequence_backward")
def lstm_sequence_backward(
    gates: Array, cells: Array, cx: Array, w: Array, wr: Array | None, g_hidden: Array | None, g_cells: Array | None,
    g_gates: Array | None, batch_sizes: Ints, reverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Propagate the gradients of each sequence from its last step to its first."""
    to_x, to_h, to_c = np.zeros_like(gates), np.zeros((len(cx), w.shape[1]), cx.dtype), np.zeros_like(cx)
    totals = np.zeros((len(gates), w.shape[1]), cx.dtype)
    for number, rows in _sequences(batch_sizes, reverse):
        for position, row in reversed(list(enumerate(rows))):
            i, f, g, o = np.split(gates[row], 4)
            last = cells[rows[position - 1]] if position else cx[number]
            top = np.tanh(cells[row])
            dh = to_h[number] + (0 if g_hidden is None else g_hidden[row])
            totals[row] = dh
            dm = dh if wr is None else wr.T @ dh
            dc = to_c[number] + dm * o * (1 - top**2) + (0 if g_cells is None else g_cells[row])
            slopes = np.concatenate((i * (1 - i), f * (1 - f), 1 - g**2, o * (1 - o)))
            through = np.concatenate((dc * g, dc * last, dc * i, dm * top))
            to_x[row] = (through + (0 if g_gates is None else g_gates[row])) * slopes
            to_h[number], to_c[number] = w.T @ to_x[row], dc * f
    return to_x, to_h, to_c, totals


@reference("gru_sequence")
def gru_sequence(
    x: Array, hx: Array, w: Array, bias: Array | None, batch_sizes: Ints, reverse: bool
) -> tuple[Array, Array]:
    """Compute reset gate, update gate, candidate and hidden state of each step."""
    hidden, gates = np.zeros((len(x), hx.shape[1]), x.dtype), np.zeros((len(x), 4 * hx.shape[1]), x.dtype)
    for number, rows in _sequences(batch_sizes, reverse):
        h = hx[number]
        for row in rows:
            p_r, p_z, p_n = np.split(x[row], 3)
            q_r, q_z, q_n = np.split(w @ h + (0 if bias is None else bias), 3)
            r, z = _sigmoid(p_r + q_r), _sigmoid(p_z + q_z)
            n = np.tanh(p_n + r * q_n)
            h = hidden[row] = (1 - z) * n + z * h
            gates[row] = np.concatenate((r, z, n, q_n))
    return hidden, gates


@reference("gru_sequence_backward")
def gru_sequence_backward(
    gates: Array, hidden: Array, hx: Array, w: Array, g_hidden: Array | None, g_gates: Array | None, batch_sizes: Ints,
    reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Propagate the gradient of each sequence from its last step to its first."""
    rows_in_all, width = hidden.shape
    to_p, to_q = (np.zeros((rows_in_all, 3 * width), hx.dtype) for _ in range(2))
    to_h = np.zeros_like(hx)
    for number, rows in _sequences(batch_sizes, reverse):
        for position, row in reversed(list(enumerate(rows))):
            r, z, n, q_n = np.split(gates[row], 4)
            more = [0, 0, 0, 0] if g_gates is None else np.split(g_gates[row], 4)
            last = hidden[rows[position - 1]] if position else hx[number]
            dh = to_h[number] + (0 if g_hidden is None else g_hidden[row])
            dp_n = (dh * (1 - z) + more[2]) * (1 - n**2)
            dp_r = (dp_n * q_n + more[0]) * r * (1 - r)
            dp_z = (dh * (last - n) + more[1]) * z * (1 - z)
            to_p[row] = np.concatenate((dp_r, dp_z, dp_n))
            to_q[row] = np.concatenate((dp_r, dp_z, dp_n * r + more[3]))
            to_h[number] = dh * z + w.T @ to_q[row]
    return to_p, to_q, to_h


# -- single steps after the products: sequences of one step with weights 0 --------------------------------------------
@reference("lstm_step")
def lstm_step(s: Array, last: Array) -> tuple[Array, ...]:
    """Compute a sequence of one step."""
    if not len(last):
        return 0 * last, 0 * last, 0 * s
    return lstm_sequence(s, 0 * last, last, np.zeros((s.shape[1], last.shape[1])), None, None, (len(s),), False)


@reference("lstm_step_backward")
def lstm_step_backward(
    gates: Array, cell: Array, last: Array, dh: Array, dc: Array | None, dgates: Array | None
) -> tuple[Array, Array]:
    """Compute the gradient of a sequence of one step."""
    if not len(last):
        return 0 * gates, 0 * last
    w = np.zeros((gates.shape[1], last.shape[1]))
    found = lstm_sequence_backward(gates, cell, last, w, None, dh, dc, dgates, (len(last),), False)
    return found[0], found[2]


@reference("gru_step")
def gru_step(p: Array, q: Array, last: Array) -> tuple[Array, Array]:
    """Compute gates and state."""
    p_r, p_z, p_n = np.split(p, 3, 1)
    q_r, q_z, q_n = np.split(q, 3, 1)
    r, z = _sigmoid(p_r + q_r), _sigmoid(p_z + q_z)
    n = np.tanh(p_n + r * q_n)
    return (1 - z) * n + z * last, np.concatenate((r, z, n, q_n), 1)


@reference("gru_step_backward")
def gru_step_backward(gates: Array, last: Array, dh: Array, dgates: Array | None) -> tuple[Array, Array, Array]:
    """Compute the gradient of a sequence of one step."""
    if not len(last):
        empty = np.zeros((0, 3 * last.shape[1]), last.dtype)
        return empty, empty, 0 * last
    w = np.zeros((3 * last.shape[1], last.shape[1]))
    return gru_sequence_backward(gates, last, last, w, dh, dgates, (len(last),), False)


# -- networks and cells -----------------------------------------------------------------------------------------------
def _layer(
    network: str, x: Array, states: list[Array], params: list[Array], batch_sizes: Ints, reverse: bool
) -> tuple[Array, list[Array]]:
    """Return the hidden states of all steps, and the last states of each sequence."""
    w_ih, w_hh, *biases = params
    products = x @ w_ih.T + (biases[0] if biases else 0)
    bias = biases[1] if biases else None
    h = states[0]
    found: tuple[Array, ...]
    if network == "lstm":
        found = lstm_sequence(products, h, states[1], w_hh, None, bias, batch_sizes, reverse)[:2]
    elif network == "gru":
        found = gru_sequence(products, h, w_hh, bias, batch_sizes, reverse)[:1]
    else:
        found = (rnn_sequence(products, h, w_hh, bias, batch_sizes, reverse, network == "rnn_relu"),)
    ends = [rows[-1] for _, rows in _sequences(batch_sizes, reverse)]
    return found[0], [state[ends] for state in found]


def _network(network: str, x: Array, batch_sizes: Ints, hx: Any, params: Any, *options: Any) -> tuple[Array, ...]:
    has_biases, num_layers, _, _, bidirectional = options
    states = list(hx) if network == "lstm" else [hx]
    each, directions = 4 if has_biases else 2, 2 if bidirectional else 1
    last: list[list[Array]] = []
    for layer in range(num_layers):
        hidden = []
        for direction in range(directions):
            at = layer * directions + direction
            own = list(params[at * each : (at + 1) * each])
            found, ends = _layer(network, x, [state[at] for state in states], own, batch_sizes, direction == 1)
            hidden.append(found)
            last.append(ends)
        x = np.concatenate(hidden, 1)
    return x, *(np.stack(state) for state in zip(*last, strict=True))


def _padded(network: str) -> Any:
    def padded(x: Array, hx: Any, params: Any, *options: Any) -> tuple[Array, ...]:
        *options, batch_first = options  # type: ignore[assignment]
        x = x.swapaxes(0, 1) if batch_first else x
        length, count = x.shape[:2]
        out, *last = _network(network, x.reshape(length * count, -1), (count,) * length, hx, params, *options)
        out = out.reshape(length, count, -1)
        return out.swapaxes(0, 1) if batch_first else out, *last

    return padded


def _packed(network: str) -> Any:
    def packed(x: Array, batch_sizes: Array, hx: Any, params: Any, *options: Any) -> tuple[Array, ...]:
        return _network(network, x, tuple(batch_sizes.tolist()), hx, params, *options)

    return packed


def _cell(network: str) -> Any:
    def cell(x: Array, hx: Any, *params: Array) -> Any:
        if not len(x):
            return (np.zeros_like(hx[0]), np.zeros_like(hx[1])) if network == "lstm" else np.zeros_like(hx)
        _, last = _layer(network, x, list(hx) if network == "lstm" else [hx], list(params), (len(x),), False)
        return tuple(last) if network == "lstm" else last[0]

    return cell


for _form, _make in (("padded", _padded), ("packed", _packed), ("cell", _cell)):
    references({f"{name}_{_form}": _make(name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")})
