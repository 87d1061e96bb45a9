"""The recurrence of an LSTM: one layer, one direction (see :mod:`candelabra.nn._operators.recurrent` for the form).

Hochreiter and Schmidhuber, Long short-term memory, 1997; with the forget gate of Gers et al., 2000. With σ the sigmoid,
``s = projected[t] + h[t - 1] @ weight_hh.T + bias`` in four parts of H columns:

    i, f, g, o = σ(s_i), σ(s_f), tanh(s_g), σ(s_o)
    c[t] = f * c[t - 1] + i * g
    h[t] = o * tanh(c[t])                  or (o * tanh(c[t])) @ weight_hr.T  (Sak et al., 2014)

The derivative uses the gates and the cells, which are results too. With dh and dc the gradients of h[t] and c[t]:

    do = dh * tanh(c[t])                   (with a projection, dh @ weight_hr in place of dh)
    dc = dc + dh * o * (1 - tanh(c[t])²)
    di, df, dg = dc * g, dc * c[t - 1], dc * i
    ds = di * i * (1 - i), df * f * (1 - f), dg * (1 - g²), do * o * (1 - o)
    dc[t - 1], dh[t - 1] = dc * f, ds @ weight_hh

Where the gates themselves have a gradient, which is so in a second derivative, it is added to di, df, dg, do.
"""

from __future__ import annotations

from candelabra.library import by, identical, operator, record, same, shape_of
from candelabra.nn._operators.recurrent import (
    StateGradient,
    check_sequence,
    check_shapes,
    entering,
    in_float32,
    in_time,
    step_shapes,
    steps_of,
    weight_gradient,
)
from candelabra.typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Any, Tensor

cat = record("cat")

Ints = tuple[int, ...]


# -- one step ---------------------------------------------------------------------------------------------------------
class LSTMStep(NamedTuple):
    """The hidden state without projection, the cell, and the gates i, f, g, o."""

    hidden: Tensor
    cell: Tensor
    gates: Tensor


@by
def _lstm_step(sums: Any, last: Any) -> tuple[Ints, Ints, Ints]:
    state = step_shapes(sums, last, 4)
    return state, state, shape_of(sums)


@operator(_lstm_step, promote=identical, result=(same,) * 3, accepts="real floating", method=False, public=False)
def lstm_step(sums: Tensor, last: Tensor) -> LSTMStep:
    """One step of an LSTM after the products: s (B, 4H) and the cell (B, H) before it."""
    step_shapes(sums, last, 4)
    i, f, g, o = _gates(sums)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cell = f * last + i * g
    return LSTMStep(o * cell.tanh(), cell, cat([i, f, g, o], 1))


class LSTMStepGradients(NamedTuple):
    """The gradients of s, and of the cell before the step."""

    sums: Tensor
    last: Tensor


def lstm_step_gradient_shapes(
    gates: Any, cell: Any, last: Any, grad_hidden: Any, grad_cell: Any, grad_gates: Any
) -> tuple[Ints, Ints]:
    """Return the shapes of the gradients. Raises ``RuntimeError`` for shapes that do not match."""
    state = step_shapes(
        gates, last, 4, cell=(cell, 1), grad_hidden=(grad_hidden, 1), grad_cell=(grad_cell, 1),
        grad_gates=(grad_gates, 4),
    )  # fmt: skip
    return shape_of(gates), state


@operator(by(lstm_step_gradient_shapes), promote=identical, result=(same, same), accepts="real floating", method=False,
          public=False, out=False)  # fmt: skip
def lstm_step_backward(
    gates: Tensor,
    cell: Tensor,
    last: Tensor,
    grad_hidden: Tensor,
    grad_cell: Tensor | None,
    grad_gates: Tensor | None,
) -> LSTMStepGradients:
    """The gradients of :func:`lstm_step`; None is 0."""
    lstm_step_gradient_shapes(gates, cell, last, grad_hidden, grad_cell, grad_gates)
    i, f, g, o = _gates(gates)
    top = cell.tanh()
    do, dc = grad_hidden * top, grad_hidden * o * (1 - top * top)
    if grad_cell is not None:
        dc = dc + grad_cell
    di, df, dg = dc * g, dc * last, dc * i
    if grad_gates is not None:
        more = _gates(grad_gates)
        di, df, dg, do = di + more[0], df + more[1], dg + more[2], do + more[3]
    return LSTMStepGradients(cat([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], 1), dc * f)


def _gates(gates: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width = gates.shape[1] // 4
    i, f, g, o = (gates.narrow(1, k * width, width) for k in range(4))
    return i, f, g, o


# -- a sequence -------------------------------------------------------------------------------------------------------
class LSTMSequence(NamedTuple):
    """The hidden states, the cells, and the gates i, f, g, o of all steps."""

    hidden: Tensor
    cells: Tensor
    gates: Tensor


def lstm_shapes(
    projected: Any, hx: Any, cx: Any, weight_hh: Any, weight_hr: Any, bias: Any, batch_sizes: Ints, *_: Any
) -> tuple[Ints, Ints, Ints]:
    """Return the shapes of the results. Raises ``RuntimeError`` for shapes that do not match."""
    rows, width = check_sequence(projected, batch_sizes), shape_of(projected)[1]
    if width % 4:
        raise RuntimeError(f"expected the columns of four gates, got {width}")
    cell = width // 4
    hidden = cell if weight_hr is None else shape_of(weight_hr)[0]
    check_shapes(
        hx=(hx, (batch_sizes[0], hidden)), cx=(cx, (batch_sizes[0], cell)), weight_hh=(weight_hh, (width, hidden)),
        weight_hr=(weight_hr, (hidden, cell)), bias=(bias, (width,)),
    )  # fmt: skip
    return (rows, hidden), (rows, cell), (rows, width)


@operator(by(lstm_shapes), promote=identical, result=(same,) * 3, accepts="real floating", method=False, public=False,
          autocast="lower")  # fmt: skip
def lstm_sequence(
    projected: Tensor,
    hx: Tensor,
    cx: Tensor,
    weight_hh: Tensor,
    weight_hr: Tensor | None,
    bias: Tensor | None,
    batch_sizes: Ints,
    reverse: bool,
) -> LSTMSequence:
    """The hidden states, cells and gates of an LSTM over a sequence.

    projected (rows, 4H), hx (B, P), cx (B, H), weight_hh (4H, P), weight_hr (P, H), bias (4H). P is H without
    ``weight_hr``.
    """
    lstm_shapes(projected, hx, cx, weight_hh, weight_hr, bias, batch_sizes)
    if projected.dtype.is_half:
        tensors = projected, hx, cx, weight_hh, weight_hr, bias
        half: LSTMSequence = in_float32(lstm_sequence, tensors, batch_sizes, reverse)
        return half
    if bias is not None:
        projected = projected + bias
    weight = weight_hh.t()
    state, cell = hx.narrow(0, 0, 0), cx.narrow(0, 0, 0)
    hidden, cells, gates = [], [], []
    for start, size in steps_of(batch_sizes, reverse):
        sums = projected.narrow(0, start, size) + entering(state, hx, size) @ weight
        step = lstm_step(sums, entering(cell, cx, size))
        cell = step.cell
        state = step.hidden if weight_hr is None else step.hidden @ weight_hr.t()
        hidden.append(state)
        cells.append(cell)
        gates.append(step.gates)
    return LSTMSequence(in_time(hidden, reverse), in_time(cells, reverse), in_time(gates, reverse))


class LSTMGradients(NamedTuple):
    """The gradients of the products of the inputs, of the initial states, and of the hidden state of each step with
    what came through the later steps."""

    projected: Tensor
    hx: Tensor
    cx: Tensor
    hidden: Tensor


def lstm_gradient_shapes(
    gates: Any, cells: Any, cx: Any, weight_hh: Any, weight_hr: Any, grad_hidden: Any, grad_cells: Any, grad_gates: Any,
    batch_sizes: Ints, *_: Any,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Return the shapes of the gradients. Raises ``RuntimeError`` for shapes that do not match."""
    hidden, cell, gate = lstm_shapes(gates, None, cx, weight_hh, weight_hr, None, batch_sizes)
    check_shapes(
        cells=(cells, cell), grad_hidden=(grad_hidden, hidden), grad_cells=(grad_cells, cell),
        grad_gates=(grad_gates, gate),
    )  # fmt: skip
    return gate, (batch_sizes[0], hidden[1]), (batch_sizes[0], cell[1]), hidden


@operator(by(lstm_gradient_shapes), promote=identical, result=(same,) * 4, accepts="real floating", method=False,
          public=False, out=False)  # fmt: skip
def lstm_sequence_backward(
    gates: Tensor,
    cells: Tensor,
    cx: Tensor,
    weight_hh: Tensor,
    weight_hr: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cells: Tensor | None,
    grad_gates: Tensor | None,
    batch_sizes: Ints,
    reverse: bool,
) -> LSTMGradients:
    """The gradients of :func:`lstm_sequence`, given those of its results; None is 0."""
    shapes = lstm_gradient_shapes(
        gates, cells, cx, weight_hh, weight_hr, grad_hidden, grad_cells, grad_gates, batch_sizes
    )
    if gates.dtype.is_half:
        tensors = gates, cells, cx, weight_hh, weight_hr, grad_hidden, grad_cells, grad_gates
        half: LSTMGradients = in_float32(lstm_sequence_backward, tensors, batch_sizes, reverse)
        return half
    if grad_hidden is None:
        grad_hidden = gates.new_zeros(shapes[3])
    steps = steps_of(batch_sizes, reverse)
    state, cell = StateGradient(), StateGradient()
    rows, totals = [], []
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        before = steps[position - 1] if position else (0, 0)
        dh = state.plus(grad_hidden.narrow(0, start, size))
        totals.append(dh)
        dm = dh if weight_hr is None else dh @ weight_hr
        dc = cell.current
        if grad_cells is not None:
            dc = cell.plus(grad_cells.narrow(0, start, size))
        ds, dc = lstm_step_backward(
            gates.narrow(0, start, size), cells.narrow(0, start, size), entering(cells.narrow(0, *before), cx, size),
            dm, dc, None if grad_gates is None else grad_gates.narrow(0, start, size),
        )  # fmt: skip
        rows.append(ds)
        state.enter(ds @ weight_hh, before[1])
        cell.enter(dc, before[1])
    late = not reverse
    return LSTMGradients(in_time(rows, late), state.of_initial(), cell.of_initial(), in_time(totals, late))


def _lstm_vjp(
    needs: tuple[bool, ...],
    hx: Tensor,
    cx: Tensor,
    weight_hh: Tensor,
    weight_hr: Tensor | None,
    batch_sizes: Ints,
    reverse: bool,
    hidden: Tensor,
    cells: Tensor,
    gates: Tensor,
    g_hidden: Tensor | None = None,
    g_cells: Tensor | None = None,
    g_gates: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    found = lstm_sequence_backward(
        gates, cells, cx, weight_hh, weight_hr, g_hidden, g_cells, g_gates, batch_sizes, reverse
    )
    ds = found.projected
    return (
        ds,
        found.hx,
        found.cx,
        weight_gradient(ds, hidden, hx, batch_sizes, reverse) if needs[3] else None,
        found.hidden.t() @ (_gates(gates)[3] * cells.tanh()) if needs[4] else None,
        ds.sum(0) if needs[5] else None,
    )


lstm_sequence.vjp(("projected", "hx", "cx", "weight_hh", "weight_hr", "bias"), _lstm_vjp)
