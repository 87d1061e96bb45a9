"""Recurrent networks of several layers and directions, with PyTorch's signatures.

Each network is an overload set: a padded batch (T, B, input), or the data of a packed sequence with its batch sizes.
Sources: see :mod:`candelabra.nn._operators.recurrent` and the files next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from candelabra.library import overloads, record
from candelabra.nn._functional.dropout import dropout as apply_dropout
from candelabra.nn._operators.recurrent import rnn_sequence
from candelabra.nn._operators.recurrent_gru import gru_sequence
from candelabra.nn._operators.recurrent_lstm import lstm_sequence
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Tensor

addmm = record("addmm")
cat = record("cat")
stack = record("stack")

Ints = tuple[int, ...]


# -- one layer in one direction ---------------------------------------------------------------------------------------
class Weights(NamedTuple):
    """The parameters of one layer in one direction; the biases are both absent or both present."""

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None


Layer = Callable[["Tensor", Weights, "list[Tensor]", Ints, bool], "tuple[Tensor, ...]"]
"""``layer(rows, weights, initial states, batch sizes, reverse)`` returns the states of all steps, the hidden ones
first."""


def _bias(weights: Weights) -> Tensor | None:
    """Return the sum of both biases, which are added to the same sum."""
    a, b = weights.input_bias, weights.hidden_bias
    return a if b is None else b if a is None else a + b


def _rnn_layer(
    relu: bool, rows: Tensor, weights: Weights, initial: list[Tensor], batch_sizes: Ints, reverse: bool
) -> tuple[Tensor, ...]:
    products = rows @ weights.input.t()
    return (rnn_sequence.function(products, *initial, weights.hidden, _bias(weights), batch_sizes, reverse, relu),)


def _lstm_layer(
    rows: Tensor, weights: Weights, initial: list[Tensor], batch_sizes: Ints, reverse: bool
) -> tuple[Tensor, ...]:
    found: Any = lstm_sequence.function(
        rows @ weights.input.t(), *initial, weights.hidden, weights.projection, _bias(weights), batch_sizes, reverse
    )
    return found.hidden, found.cells


def _gru_layer(
    rows: Tensor, weights: Weights, initial: list[Tensor], batch_sizes: Ints, reverse: bool
) -> tuple[Tensor, ...]:
    into, bias = weights.input.t(), weights.input_bias
    products = rows @ into if bias is None else addmm.function(bias, rows, into)
    found: Any = gru_sequence.function(products, *initial, weights.hidden, weights.hidden_bias, batch_sizes, reverse)
    return (found.hidden,)


LAYERS: dict[str, Layer] = {
    "lstm": _lstm_layer, "gru": _gru_layer, "rnn_tanh": partial(_rnn_layer, False),
    "rnn_relu": partial(_rnn_layer, True),
}  # fmt: skip


# -- all layers -------------------------------------------------------------------------------------------------------
def _weights(params: Sequence[Tensor], has_biases: bool, projected: bool) -> list[Weights]:
    """Return the parameters of each layer and direction. Raises ``RuntimeError`` if their number is wrong."""
    each = 2 + 2 * has_biases + projected
    if len(params) % each:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(params)} is no multiple of {each}")
    return [
        Weights(
            params[at],
            params[at + 1],
            params[at + 2] if has_biases else None,
            params[at + 3] if has_biases else None,
            params[at + each - 1] if projected else None,
        )
        for at in range(0, len(params), each)
    ]


def _last_rows(states: Tensor, batch_sizes: Ints, reverse: bool) -> Tensor:
    """Return the state of each sequence after its last step; in reverse that is its first time step."""
    count = batch_sizes[0]
    if reverse:
        return states.narrow(0, 0, count)
    rows, stop, ended = [], states.shape[0], 0
    for size in batch_sizes[::-1]:
        if size > ended:
            rows.append(states.narrow(0, stop - size + ended, size - ended))
            ended = size
        stop -= size
    if len(rows) == 1:
        return rows[0]
    out: Tensor = cat.function(rows, 0) if rows else states.narrow(0, 0, 0)
    return out


def _network(
    name: str,
    rows: Tensor,
    batch_sizes: Ints,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """Return the hidden states of the last layer, as rows of all steps, and the last states of all layers."""
    projected = name == "lstm" and states[0].shape[-1] != states[1].shape[-1]
    weights = _weights(params, has_biases, projected)
    directions = (False, True) if bidirectional else (False,)
    count = num_layers * len(directions)
    if len(weights) != count:
        raise RuntimeError(f"got an incorrect number of RNN parameters: {len(weights)} layers, expected {count}")
    if any(state.ndim != 3 or state.shape[0] != count for state in states):
        raise RuntimeError(
            f"Expected more hidden states in stacked_rnn: ({count}, batch, hidden), got {list(states[0].shape)}"
        )
    layer = LAYERS[name]
    initial = [list(state.unbind(0)) for state in states]
    last: list[list[Tensor]] = [[] for _ in states]
    for number in range(num_layers):
        hidden = []
        for reverse in directions:
            at = number * len(directions) + reverse
            found = layer(rows, weights[at], [state[at] for state in initial], batch_sizes, reverse)
            hidden.append(found[0])
            for collected, state in zip(last, found, strict=True):
                collected.append(_last_rows(state, batch_sizes, reverse))
        rows = hidden[0] if len(hidden) == 1 else cat.function(hidden, 1)
        if dropout and train and number < num_layers - 1:
            rows = apply_dropout(rows, dropout, True)
    return rows, *(stack.function(each, 0) for each in last)


def _padded(name: str, input: Tensor, states: Sequence[Tensor], batch_first: bool, *rest: Any) -> tuple[Tensor, ...]:
    """Apply :func:`_network` to a batch of sequences of one length."""
    if input.ndim != 3:
        raise RuntimeError(f"{name}: expected input of shape (time, batch, input_size), got {list(input.shape)}")
    if batch_first:
        input = input.transpose(0, 1)
    length, count, width = input.shape
    if not length:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows, *last = _network(name, input.reshape((length * count, width)), (count,) * length, states, *rest)
    out = rows.reshape((length, count, rows.shape[1]))
    return out.transpose(0, 1) if batch_first else out, *last


def _packed(name: str, data: Tensor, batch_sizes: Tensor, states: Sequence[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    """Apply :func:`_network` to the data of a packed sequence."""
    return _network(name, data, tuple(batch_sizes.tolist()), states, *rest)


def two_states(name: str, hx: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the hidden state and the cell of an LSTM. Raises ``RuntimeError`` for another number of states."""
    if len(hx) != 2:
        raise RuntimeError(f"{name} expects two hidden states")
    return hx


# -- the public functions ---------------------------------------------------------------------------------------------
def lstm_padded(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM over a batch of sequences: the hidden states of the last layer, and the last hidden and cell states.

    input (T, B, input), or (B, T, input) with ``batch_first``; ``hx``: two states (layers * directions, B, size);
    ``params``: for each layer and direction weight_ih, weight_hh, bias_ih and bias_hh with ``has_biases``, and
    weight_hr if the two states differ in size. In training, ``dropout`` applies between layers.
    """
    states = two_states("lstm", hx)
    return _padded("lstm", input, states, batch_first, params, has_biases, num_layers, dropout, train, bidirectional)  # type: ignore[return-value]


def lstm_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same over a packed sequence: its data (rows, input), and its batch sizes (T), which are integers."""
    states = two_states("lstm", hx)
    return _packed("lstm", data, batch_sizes, states, params, has_biases, num_layers, dropout, train, bidirectional)  # type: ignore[return-value]


lstm = overloads("lstm", lstm_padded, lstm_packed, method=False)


def gru_padded(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """A GRU over a batch of sequences: the states of the last layer, and the last states.

    The arguments are those of :func:`lstm`, with one state ``hx`` (layers * directions, B, hidden).
    """
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _padded("gru", input, (hx,), batch_first, *rest)
    return out, h


def gru_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]:
    """The same over a packed sequence: its data (rows, input), and its batch sizes (T), which are integers."""
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _packed("gru", data, batch_sizes, (hx,), *rest)
    return out, h


gru = overloads("gru", gru_padded, gru_packed, method=False)


def rnn_tanh_padded(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """A recurrent network with tanh over a batch of sequences: the states of the last layer, and the last states.

    The arguments are those of :func:`lstm`, with one state ``hx`` (layers * directions, B, hidden).
    """
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _padded("rnn_tanh", input, (hx,), batch_first, *rest)
    return out, h


def rnn_tanh_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]:
    """The same over a packed sequence: its data (rows, input), and its batch sizes (T), which are integers."""
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _packed("rnn_tanh", data, batch_sizes, (hx,), *rest)
    return out, h


rnn_tanh = overloads("rnn_tanh", rnn_tanh_padded, rnn_tanh_packed, method=False)


def rnn_relu_padded(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor]:
    """A recurrent network with relu over a batch of sequences: the states of the last layer, and the last states.

    The arguments are those of :func:`lstm`, with one state ``hx`` (layers * directions, B, hidden).
    """
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _padded("rnn_relu", input, (hx,), batch_first, *rest)
    return out, h


def rnn_relu_packed(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, Tensor]:
    """The same over a packed sequence: its data (rows, input), and its batch sizes (T), which are integers."""
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    out, h = _packed("rnn_relu", data, batch_sizes, (hx,), *rest)
    return out, h


rnn_relu = overloads("rnn_relu", rnn_relu_padded, rnn_relu_packed, method=False)
