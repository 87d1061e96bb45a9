"""Single steps of recurrent networks, with PyTorch's signatures."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.amp.autocast_mode import autocast
from candelabra.library import autocast_on_host, float32_on_host, public
from candelabra.nn._functional.recurrent import LAYERS, Weights, two_states
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _step(name: str, gates: int, input: Tensor, states: Sequence[Tensor], *params: Any) -> Sequence[Tensor]:
    """Return the states after one step of a batch. Raises ``RuntimeError`` for sizes that do not match."""
    weights = Weights(*params)
    if input.ndim != 2 or any(state.ndim != 2 for state in states):
        raise RuntimeError(f"{name}_cell: expected matrices for the input and the hidden states")
    if input.shape[1] != weights.input.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {weights.input.shape[1]}")
    size = weights.hidden.shape[1]
    for number, state in enumerate(states):
        if state.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
            )
        if state.shape[1] != size:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {size}")
    for side, weight in (("weight_ih", weights.input), ("weight_hh", weights.hidden)):
        if weight.shape[0] != gates * size:
            raise RuntimeError(
                f"{side} first dim must be {gates} * hidden_size = {gates * size}, but got {weight.shape[0]}"
            )
    return LAYERS[name](input, weights, list(states), (input.shape[0],), False)


def _gated_step(name: str, gates: int, input: Tensor, states: Sequence[Tensor], *params: Any) -> Sequence[Tensor]:
    """Return the states as :func:`_step` does.

    Under autocast on the host they are computed in float32 and have the dtype of the last given state: there the
    products of PyTorch's LSTM and GRU cells are in lower precision, and the states are not.
    """
    if not autocast_on_host(input):
        return _step(name, gates, input, states, *params)
    tensors = [None if t is None else float32_on_host(t) for t in (input, *states, *params)]
    wide_input, wide_states, wide_params = tensors[0], tensors[1 : len(states) + 1], tensors[len(states) + 1 :]
    with autocast(input.device.type, enabled=False):
        found = _step(name, gates, wide_input, wide_states, *wide_params)  # type: ignore[arg-type]
    return [state.to(states[-1].dtype) for state in found]


@public(method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the hidden state and the cell, (B, H) each.

    input (B, input), ``hx``: hidden state and cell, w_ih (4H, input), w_hh (4H, H), b_ih and b_hh (4H).
    """
    h, c = _gated_step("lstm", 4, input, two_states("lstm_cell", hx), w_ih, w_hh, b_ih, b_hh)
    return h, c


@public(method=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU: input (B, input), hx (B, H), w_ih (3H, input), w_hh (3H, H), b_ih and b_hh (3H) to (B, H)."""
    return _gated_step("gru", 3, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@public(method=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """``tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``: input (B, input), hx (B, H)."""
    return _step("rnn_tanh", 1, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@public(method=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """``relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``: input (B, input), hx (B, H)."""
    return _step("rnn_relu", 1, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
