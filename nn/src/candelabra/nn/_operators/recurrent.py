"""Recurrent networks: the recurrence of one layer in one direction, over a whole sequence.

The products of the inputs with ``weight_ih`` are one matrix product, which is computed before. The recurrence adds the
product of the hidden state with ``weight_hh`` step by step. This file has the plain recurrent network; the LSTM and the
GRU have the same form in :mod:`~candelabra.nn._operators.recurrent_lstm` and ``recurrent_gru``.

All values of a sequence are one matrix: ``batch_sizes[t]`` rows for each time step t, one row per sequence. The sizes
do not increase, since the sequences are sorted by length. ``reverse``: the recurrence goes from the last time step to
the first.
"""

from __future__ import annotations

from itertools import pairwise

from candelabra.dtypes import float32
from candelabra.library import by, identical, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Any, Tensor

cat = record("cat")

Ints = tuple[int, ...]


def in_float32(record: Any, tensors: tuple[Tensor | None, ...], *rest: Any) -> Any:
    """Return the results of an operator for tensors of a half type: computed in float32, and rounded once."""
    half = next(t.dtype for t in tensors if t is not None)
    out = record(*[None if t is None else t.to(float32) for t in tensors], *rest)
    return type(out)(*[t.to(half) for t in out]) if isinstance(out, tuple) else out.to(half)


# -- the order of the steps -------------------------------------------------------------------------------------------
def steps_of(batch_sizes: Ints, reverse: bool) -> list[tuple[int, int]]:
    """Return the first row and the number of rows of each step, in the order of the recurrence."""
    steps, start = [], 0
    for size in batch_sizes:
        steps.append((start, size))
        start += size
    return steps[::-1] if reverse else steps


def entering(state: Tensor, initial: Tensor, size: int) -> Tensor:
    """Return the state that enters a step of ``size`` sequences, given the state that the step before left.

    Sequences that have ended leave. Sequences that begin later, in a reverse recurrence, enter in their initial state.
    """
    before = state.shape[0]
    if not before:
        return initial.narrow(0, 0, size)
    if before > size:
        return state.narrow(0, 0, size)
    if before < size:
        added: Tensor = cat([state, initial.narrow(0, before, size - before)], 0)
        return added
    return state


def in_time(rows: list[Tensor], reverse: bool) -> Tensor:
    """Return the matrix of the results of all steps, which are given in the order of the recurrence."""
    out: Tensor = cat(rows[::-1] if reverse else rows, 0)
    return out


class StateGradient:
    """The gradient of a state, from the last step of the recurrence to the first: the transpose of :func:`entering`."""

    def __init__(self) -> None:
        self.current: Tensor | None = None
        self.to_initial: list[Tensor] = []

    def enter(self, g: Tensor, before: int) -> None:
        """Take the gradient of the state that entered a step; the step before left ``before`` sequences, or 0."""
        size = g.shape[0]
        if before < size:
            self.to_initial.append(g.narrow(0, before, size - before))
            g = g.narrow(0, 0, before)
        elif before > size:
            g = cat([g, g.new_zeros((before - size, g.shape[1]))], 0)
        self.current = g

    def plus(self, g: Tensor) -> Tensor:
        """Return ``g`` plus the gradient of the state that the current step left."""
        return g if self.current is None else g + self.current

    def of_initial(self) -> Tensor:
        """Return the gradient of the initial state."""
        if self.current is not None and not self.to_initial:  # no sequences
            return self.current
        out: Tensor = cat(self.to_initial[::-1], 0)
        return out


def previous_rows(states: Tensor, initial: Tensor, batch_sizes: Ints, reverse: bool) -> Tensor:
    """Return the matrix of the states that enter the steps, given those that the steps leave."""
    rows, state = [], initial.narrow(0, 0, 0)
    for start, size in steps_of(batch_sizes, reverse):
        rows.append(entering(state, initial, size))
        state = states.narrow(0, start, size)
    return in_time(rows, reverse)


def weight_gradient(g: Tensor, states: Tensor, initial: Tensor, batch_sizes: Ints, reverse: bool) -> Tensor:
    """Return the gradient of ``weight_hh``: the product of the gradients of all steps with the entering states."""
    rows, count = g.shape[0], batch_sizes[0]
    if len(set(batch_sizes)) > 1 or len(batch_sizes) == 1:
        return g.t() @ previous_rows(states, initial, batch_sizes, reverse)
    others = rows - count
    first = g.narrow(0, others if reverse else 0, count).t() @ initial
    later, before = (0, count) if reverse else (count, 0)
    return (g.narrow(0, later, others).t() @ states.narrow(0, before, others)) + first


# -- shapes -----------------------------------------------------------------------------------------------------------
def check_sequence(projected: Any, batch_sizes: Ints) -> int:
    """Return the number of rows. Raises ``RuntimeError`` for batch sizes that are not a packed sequence's."""
    shape = shape_of(projected)
    if len(shape) != 2:
        raise RuntimeError(f"expected a matrix of rows for all steps, got shape {list(shape)}")
    if not batch_sizes or any(a < b for a, b in pairwise(batch_sizes)) or batch_sizes[-1] < 0:
        raise RuntimeError(f"expected batch sizes that do not increase, got {list(batch_sizes)}")
    if sum(batch_sizes) != shape[0]:
        raise RuntimeError(f"the batch sizes {list(batch_sizes)} do not sum to the {shape[0]} rows")
    return shape[0]


def check_shapes(**expected: tuple[Any, Ints]) -> None:
    """Raise ``RuntimeError`` for a tensor, by name, that has not the expected shape; None has none."""
    for name, (value, shape) in expected.items():
        if value is not None and shape_of(value) != shape:
            raise RuntimeError(f"expected {name} of shape {list(shape)}, got {list(shape_of(value))}")


def step_shapes(sums: Any, last: Any, chunks: int, **others: tuple[Any, int]) -> tuple[int, int]:
    """Return rows and columns of a state. Raises ``RuntimeError`` for matrices of other columns."""
    shape = shape_of(last)
    if len(shape) != 2:
        raise RuntimeError(f"expected a matrix of states, got shape {list(shape)}")
    rows, width = shape
    expected = {"sums": (sums, chunks), **others}
    check_shapes(**{name: (value, (rows, count * width)) for name, (value, count) in expected.items()})
    return rows, width


# -- the plain recurrent network --------------------------------------------------------------------------------------
def rnn_shape(projected: Any, hx: Any, weight_hh: Any, bias: Any, batch_sizes: Ints, *_: Any) -> Ints:
    """Return the shape of the hidden states. Raises ``RuntimeError`` for shapes that do not match."""
    rows, width = check_sequence(projected, batch_sizes), shape_of(projected)[1]
    check_shapes(hx=(hx, (batch_sizes[0], width)), weight_hh=(weight_hh, (width, width)), bias=(bias, (width,)))
    return rows, width


@operator(by(rnn_shape), promote=identical, accepts="real floating", method=False, public=False, out=False,
          autocast="lower")  # fmt: skip
def rnn_sequence(
    projected: Tensor,
    hx: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None,
    batch_sizes: Ints,
    reverse: bool,
    relu: bool,
) -> Tensor:
    """The hidden states ``h[t] = tanh(projected[t] + h[t - 1] @ weight_hh.T + bias)`` of all steps; or relu.

    projected (rows, H), hx (B, H), weight_hh (H, H), bias (H). Elman, Finding structure in time, 1990.
    """
    rnn_shape(projected, hx, weight_hh, bias, batch_sizes)
    if projected.dtype.is_half:
        half: Tensor = in_float32(rnn_sequence, (projected, hx, weight_hh, bias), batch_sizes, reverse, relu)
        return half
    if bias is not None:
        projected = projected + bias
    weight = weight_hh.t()
    state = hx.narrow(0, 0, 0)
    rows = []
    for start, size in steps_of(batch_sizes, reverse):
        sums = projected.narrow(0, start, size) + entering(state, hx, size) @ weight
        state = sums.relu() if relu else sums.tanh()
        rows.append(state)
    return in_time(rows, reverse)


class RNNGradients(NamedTuple):
    """The gradients of the products of the inputs, and of the initial state."""

    projected: Tensor
    hx: Tensor


@by
def _rnn_gradients(grad: Any, hidden: Any, hx: Any, weight_hh: Any, batch_sizes: Ints, *_: Any) -> tuple[Ints, Ints]:
    shape = rnn_shape(hidden, hx, weight_hh, None, batch_sizes)
    check_shapes(grad=(grad, shape))
    return shape, shape_of(hx)


@operator(_rnn_gradients, promote=identical, result=(same, same), accepts="real floating", method=False, public=False,
          out=False)  # fmt: skip
def rnn_sequence_backward(
    grad: Tensor, hidden: Tensor, hx: Tensor, weight_hh: Tensor, batch_sizes: Ints, reverse: bool, relu: bool
) -> RNNGradients:
    """The gradients of :func:`rnn_sequence`; ``grad`` is the gradient of its result ``hidden``."""
    rnn_shape(hidden, hx, weight_hh, None, batch_sizes)
    check_shapes(grad=(grad, tuple(hidden.shape)))
    if grad.dtype.is_half:
        half: RNNGradients = in_float32(
            rnn_sequence_backward, (grad, hidden, hx, weight_hh), batch_sizes, reverse, relu
        )
        return half
    slope = (hidden > 0).to(hidden.dtype) if relu else 1 - hidden * hidden
    steps = steps_of(batch_sizes, reverse)
    state = StateGradient()
    rows = []
    for position in reversed(range(len(steps))):
        start, size = steps[position]
        g = state.plus(grad.narrow(0, start, size)) * slope.narrow(0, start, size)
        rows.append(g)
        state.enter(g @ weight_hh, steps[position - 1][1] if position else 0)
    return RNNGradients(in_time(rows, not reverse), state.of_initial())


def _rnn_vjp(
    needs: tuple[bool, bool, bool, bool],
    g: Tensor,
    out: Tensor,
    hx: Tensor,
    weight_hh: Tensor,
    batch_sizes: Ints,
    reverse: bool,
    relu: bool,
) -> tuple[Tensor | None, ...]:
    found = rnn_sequence_backward(g, out, hx, weight_hh, batch_sizes, reverse, relu)
    return (
        found.projected,
        found.hx,
        weight_gradient(found.projected, out, hx, batch_sizes, reverse) if needs[2] else None,
        found.projected.sum(0) if needs[3] else None,
    )


rnn_sequence.vjp(("projected", "hx", "weight_hh", "bias"), _rnn_vjp)
