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
    in_time,
    steps_of,
    weight_gradient,
)
from candelabra.typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Any, Tensor

cat = record("cat")

Ints = tuple[int, ...]


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


@operator(by(lstm_shapes), promote=identical, result=(same,) * 3, accepts="real floating", method=False, public=False)
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
    if bias is not None:
        projected = projected + bias
    weight = weight_hh.t()
    state, cell = hx.narrow(0, 0, 0), cx.narrow(0, 0, 0)
    hidden, cells, gates = [], [], []
    for start, size in steps_of(batch_sizes, reverse):
        sums = projected.narrow(0, start, size) + entering(state, hx, size) @ weight
        i, f, g, o = _gates(sums)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cell = f * entering(cell, cx, size) + i * g
        state = o * cell.tanh()
        if weight_hr is not None:
            state = state @ weight_hr.t()
        hidden.append(state)
        cells.append(cell)
        gates.append(cat([i, f, g, o], 1))
    return LSTMSequence(in_time(hidden, reverse), in_time(cells, reverse), in_time(gates, reverse))


def _gates(gates: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width = gates.shape[1] // 4
    i, f, g, o = (gates.narrow(1, k * width, width) for k in range(4))
    return i, f, g, o


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
        i, f, g, o = _gates(gates.narrow(0, start, size))
        top = cells.narrow(0, start, size).tanh()
        do, dc = dm * top, cell.plus(dm * o * (1 - top * top))
        if grad_cells is not None:
            dc = dc + grad_cells.narrow(0, start, size)
        di, df, dg = dc * g, dc * entering(cells.narrow(0, *before), cx, size), dc * i
        if grad_gates is not None:
            more = _gates(grad_gates.narrow(0, start, size))
            di, df, dg, do = di + more[0], df + more[1], dg + more[2], do + more[3]
        ds = cat([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], 1)
        rows.append(ds)
        state.enter(ds @ weight_hh, before[1])
        cell.enter(dc * f, before[1])
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
