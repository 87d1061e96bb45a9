"""The recurrence of a GRU: one layer, one direction (see :mod:`candelabra.nn._operators.recurrent` for the form).

Cho et al., Learning phrase representations using RNN encoder-decoder, 2014. With σ the sigmoid,
``p = projected[t]`` and ``q = h[t - 1] @ weight_hh.T + bias``, each in three parts of H columns:

    r, z = σ(p_r + q_r), σ(p_z + q_z)
    n = tanh(p_n + r * q_n)
    h[t] = (1 - z) * n + z * h[t - 1] = n + z * (h[t - 1] - n)

The derivative uses r, z, n and q_n, which are results too. With dh the gradient of h[t]:

    dz, dn = dh * (h[t - 1] - n), dh * (1 - z)
    dp_n = dn * (1 - n²),  dr = dp_n * q_n,  dq_n = dp_n * r
    dp_r, dp_z = dr * r * (1 - r), dz * z * (1 - z) = dq_r, dq_z
    dh[t - 1] = dh * z + dq @ weight_hh

Where r, z, n and q_n themselves have a gradient, which is so in a second derivative, it is added to dr, dz, dn, dq_n.
"""

from __future__ import annotations

from candelabra.library import Autocast, by, identical, operator, record, same, shape_of
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
class GRUStep(NamedTuple):
    """The hidden state, and r, z, n and q_n."""

    hidden: Tensor
    gates: Tensor


@by
def _gru_step(projected: Any, products: Any, last: Any) -> tuple[Ints, Ints]:
    rows, width = step_shapes(projected, last, 3, products=(products, 3))
    return (rows, width), (rows, 4 * width)


@operator(_gru_step, promote=identical, result=(same, same), accepts="real floating", method=False, public=False)
def gru_step(projected: Tensor, products: Tensor, last: Tensor) -> GRUStep:
    """One step of a GRU after the products: p and q (B, 3H), and the hidden state (B, H) before it."""
    step_shapes(projected, last, 3, products=(products, 3))
    p_r, p_z, p_n = _gates(projected, 3)
    q_r, q_z, q_n = _gates(products, 3)
    r, z = (p_r + q_r).sigmoid(), (p_z + q_z).sigmoid()
    n = (p_n + r * q_n).tanh()
    return GRUStep(n + z * (last - n), cat([r, z, n, q_n], 1))


class GRUStepGradients(NamedTuple):
    """The gradients of p and of q, and of the hidden state before the step except that through q."""

    projected: Tensor
    products: Tensor
    last: Tensor


def gru_step_gradient_shapes(gates: Any, last: Any, grad_hidden: Any, grad_gates: Any) -> tuple[Ints, Ints, Ints]:
    """Return the shapes of the gradients. Raises ``RuntimeError`` for shapes that do not match."""
    rows, width = step_shapes(gates, last, 4, grad_hidden=(grad_hidden, 1), grad_gates=(grad_gates, 4))
    return (rows, 3 * width), (rows, 3 * width), (rows, width)


@operator(by(gru_step_gradient_shapes), promote=identical, result=(same,) * 3, accepts="real floating", method=False,
          public=False, out=False)  # fmt: skip
def gru_step_backward(gates: Tensor, last: Tensor, grad_hidden: Tensor, grad_gates: Tensor | None) -> GRUStepGradients:
    """The gradients of :func:`gru_step`; None is 0."""
    gru_step_gradient_shapes(gates, last, grad_hidden, grad_gates)
    r, z, n, q_n = _gates(gates, 4)
    dz, dn = grad_hidden * (last - n), grad_hidden * (1 - z)
    more = None if grad_gates is None else _gates(grad_gates, 4)
    if more is not None:
        dz, dn = dz + more[1], dn + more[2]
    dp_n = dn * (1 - n * n)
    dr, dq_n = dp_n * q_n, dp_n * r
    if more is not None:
        dr, dq_n = dr + more[0], dq_n + more[3]
    dp_r, dp_z = dr * r * (1 - r), dz * z * (1 - z)
    return GRUStepGradients(cat([dp_r, dp_z, dp_n], 1), cat([dp_r, dp_z, dq_n], 1), grad_hidden * z)


def _gates(gates: Tensor, count: int) -> list[Tensor]:
    width = gates.shape[1] // count
    return [gates.narrow(1, k * width, width) for k in range(count)]


# -- a sequence -------------------------------------------------------------------------------------------------------
class GRUSequence(NamedTuple):
    """The hidden states, and r, z, n and q_n of all steps."""

    hidden: Tensor
    gates: Tensor


def gru_shapes(projected: Any, hx: Any, weight_hh: Any, bias: Any, batch_sizes: Ints, *_: Any) -> tuple[Ints, Ints]:
    """Return the shapes of the results. Raises ``RuntimeError`` for shapes that do not match."""
    rows, columns = check_sequence(projected, batch_sizes), shape_of(projected)[1]
    if columns % 3:
        raise RuntimeError(f"expected the columns of three gates, got {columns}")
    width = columns // 3
    check_shapes(hx=(hx, (batch_sizes[0], width)), weight_hh=(weight_hh, (columns, width)), bias=(bias, (columns,)))
    return (rows, width), (rows, 4 * width)


@operator(by(gru_shapes), promote=identical, result=(same, same), accepts="real floating", method=False, public=False,
          autocast=Autocast("lower", "widest"))  # fmt: skip
def gru_sequence(
    projected: Tensor, hx: Tensor, weight_hh: Tensor, bias: Tensor | None, batch_sizes: Ints, reverse: bool
) -> GRUSequence:
    """The hidden states and the gates of a GRU over a sequence.

    projected (rows, 3H), hx (B, H), weight_hh (3H, H), bias (3H), which is added to the product with ``weight_hh``.
    """
    gru_shapes(projected, hx, weight_hh, bias, batch_sizes)
    if projected.dtype.is_half:
        half: GRUSequence = in_float32(gru_sequence, (projected, hx, weight_hh, bias), batch_sizes, reverse)
        return half
    weight = weight_hh.t()
    state = hx.narrow(0, 0, 0)
    hidden, gates = [], []
    for start, size in steps_of(batch_sizes, reverse):
        last = entering(state, hx, size)
        product = last @ weight
        step = gru_step(projected.narrow(0, start, size), product if bias is None else product + bias, last)
        state = step.hidden
        hidden.append(state)
        gates.append(step.gates)
    return GRUSequence(in_time(hidden, reverse), in_time(gates, reverse))


class GRUGradients(NamedTuple):
    """The gradients of the products of the inputs, of the products with the hidden states, and of the initial state."""

    projected: Tensor
    products: Tensor
    hx: Tensor


def gru_gradient_shapes(
    gates: Any, hidden: Any, hx: Any, weight_hh: Any, grad_hidden: Any, grad_gates: Any, batch_sizes: Ints, *_: Any
) -> tuple[Ints, Ints, Ints]:
    """Return the shapes of the gradients. Raises ``RuntimeError`` for shapes that do not match."""
    rows, width = check_sequence(hidden, batch_sizes), shape_of(hidden)[1]
    sums, gate = (rows, 3 * width), (rows, 4 * width)
    check_shapes(
        hx=(hx, (batch_sizes[0], width)), weight_hh=(weight_hh, (3 * width, width)), gates=(gates, gate),
        grad_hidden=(grad_hidden, (rows, width)), grad_gates=(grad_gates, gate),
    )  # fmt: skip
    return sums, sums, (batch_sizes[0], width)


@operator(by(gru_gradient_shapes), promote=identical, result=(same,) * 3, accepts="real floating", method=False,
          public=False, out=False)  # fmt: skip
def gru_sequence_backward(
    gates: Tensor,
    hidden: Tensor,
    hx: Tensor,
    weight_hh: Tensor,
    grad_hidden: Tensor | None,
    grad_gates: Tensor | None,
    batch_sizes: Ints,
    reverse: bool,
) -> GRUGradients:
    """The gradients of :func:`gru_sequence`, given those of its results; None is 0."""
    gru_gradient_shapes(gates, hidden, hx, weight_hh, grad_hidden, grad_gates, batch_sizes)
    if gates.dtype.is_half:
        tensors = gates, hidden, hx, weight_hh, grad_hidden, grad_gates
        half: GRUGradients = in_float32(gru_sequence_backward, tensors, batch_sizes, reverse)
        return half
    if grad_hidden is None:
        grad_hidden = hidden.new_zeros(hidden.shape)
    steps = steps_of(batch_sizes, reverse)
    state = StateGradient()
    rows, products = [], []
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        before = steps[position - 1] if position else (0, 0)
        dh = state.plus(grad_hidden.narrow(0, start, size))
        step = gru_step_backward(
            gates.narrow(0, start, size), entering(hidden.narrow(0, *before), hx, size), dh,
            None if grad_gates is None else grad_gates.narrow(0, start, size),
        )  # fmt: skip
        rows.append(step.projected)
        products.append(step.products)
        state.enter(step.last + step.products @ weight_hh, before[1])
    return GRUGradients(in_time(rows, not reverse), in_time(products, not reverse), state.of_initial())


def _gru_vjp(
    needs: tuple[bool, ...],
    hx: Tensor,
    weight_hh: Tensor,
    batch_sizes: Ints,
    reverse: bool,
    hidden: Tensor,
    gates: Tensor,
    g_hidden: Tensor | None = None,
    g_gates: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    found = gru_sequence_backward(gates, hidden, hx, weight_hh, g_hidden, g_gates, batch_sizes, reverse)
    return (
        found.projected,
        found.hx,
        weight_gradient(found.products, hidden, hx, batch_sizes, reverse) if needs[2] else None,
        found.products.sum(0) if needs[3] else None,
    )


gru_sequence.vjp(("projected", "hx", "weight_hh", "bias"), _gru_vjp)
