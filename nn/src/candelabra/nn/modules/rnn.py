"""Recurrent networks and their cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import init
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter, unset
from candelabra.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
Hidden = tuple[int, int, int]


class RNNBase(Module):
    """The parameters and the checks of :class:`RNN`, :class:`LSTM` and :class:`GRU`.

    For layer k, ``weight_ih_l[k]`` (gates * hidden, input of the layer), ``weight_hh_l[k]`` (gates * hidden, output),
    ``bias_ih_l[k]`` and ``bias_hh_l[k]`` (gates * hidden) with ``bias``, and ``weight_hr_l[k]`` (proj_size, hidden)
    with ``proj_size``; the same with ``_reverse`` at the end if ``bidirectional``. All are drawn from U(-k, k),
    k = 1 / sqrt(hidden_size).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_arguments(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, outputs = GATES[mode] * hidden_size, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else outputs * (1 + bool(bidirectional))
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, outputs)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    self.register_parameter(name, Parameter(candelabra.empty(*shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The parameters in the order of the functions. A tensor that was set in place of a parameter is used."""
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: no device needs the parameters in one piece of memory."""

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    # -- checks -------------------------------------------------------------------------------------------------------
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise ``ValueError`` for another dtype than the parameters', ``RuntimeError`` for other sizes."""
        weight: Tensor = getattr(self, self._flat_weights_names[0])
        if input.dtype is not weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.ndim != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> Hidden:
        """Return the shape of the hidden state for an input."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> Hidden:
        if batch_sizes is not None:
            count = int(batch_sizes[0].item())
        else:
            count = input.shape[0 if self.batch_first else 1]
        return self.num_layers * (1 + bool(self.bidirectional)), count, size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: Hidden, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise ``RuntimeError`` for a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the hidden state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the state with the sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # -- the forward pass ---------------------------------------------------------------------------------------------
    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            rank = f"{input.ndim}D tensor" if self.mode.startswith("RNN") else f"{input.ndim}D"
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {rank} instead")
        batched = input.ndim == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zeros(input, None)
        else:
            self._check_rank(hx, batched)
            if not batched:
                hx = self._each(hx, lambda state: state.unsqueeze(1))
        self.check_forward_args(input, hx, None)
        out, hidden = self._run(input, hx, (self.batch_first,))
        if not batched:
            return out.squeeze(batch_dim), self._each(hidden, lambda state: state.squeeze(1))
        return out, hidden

    def _forward_packed(self, sequence: PackedSequence, hx: Any) -> tuple[Any, Any]:
        data, batch_sizes, order, original = sequence
        hx = self._zeros(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        out, hidden = self._run(data, hx, (), batch_sizes)
        return PackedSequence(out, batch_sizes, order, original), self.permute_hidden(hidden, original)

    def _run(self, input: Tensor, hx: Any, last: tuple[bool, ...], *batch_sizes: Tensor) -> tuple[Any, Any]:
        """Call the function of the mode; ``last`` is its argument ``batch_first``, which a packed sequence lacks."""
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        out, *states = getattr(candelabra, self.mode.lower())(
            input, *batch_sizes, hx, self._flat_weights, *options, *last
        )
        return out, states[0] if len(states) == 1 else tuple(states)

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        """Return the initial state for an input without one."""
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _each(self, hx: Any, function: Any) -> Any:
        """Apply a function to each tensor of the state."""
        return function(hx)

    def _check_rank(self, hx: Any, batched: bool) -> None:
        """Raise ``RuntimeError`` if one of state and input is a batch and the other is not."""
        rank = 3 if batched else 2
        if hx.ndim != rank:
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx should also be {rank}-D but got "
                f"{hx.ndim}-D tensor"
            )

    def extra_repr(self) -> str:
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False,
        }  # fmt: skip
        given = {name: getattr(self, name) for name in defaults}
        options = "".join(f", {name}={value}" for name, value in given.items() if value != defaults[name])
        return f"{self.input_size}, {self.hidden_size}{options}"


def _check_arguments(
    mode: str, input_size: int, hidden_size: int, num_layers: int, bias: bool, batch_first: bool, dropout: Any,
    proj_size: int,
) -> None:  # fmt: skip
    """Raise ``ValueError`` or ``TypeError`` for arguments of :class:`RNNBase` that make no network."""
    if isinstance(dropout, bool) or not 0 <= float(dropout) <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("input_size", input_size, int), ("hidden_size", hidden_size, int), ("bias", bias, bool),
        ("batch_first", batch_first, bool),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in GATES:
        raise ValueError(f"Unrecognized RNN mode: {mode}")


class RNN(RNNBase):
    """A recurrent network of Elman's: ``h[t] = tanh(x[t] @ weight_ih.T + bias_ih + h[t - 1] @ weight_hh.T + bias_hh)``.

    ``nonlinearity``: ``"tanh"`` or ``"relu"``. Called with an input (T, B, input_size), or (B, T, input_size) with
    ``batch_first``, (T, input_size), or a :class:`~candelabra.nn.utils.rnn.PackedSequence`, and optionally the hidden
    state (layers * directions, B, hidden_size), by default 0. Returns the hidden states of the last layer at all steps,
    and those of all layers after the last step. In training, ``dropout`` applies to the input of each layer but the
    first.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        _refuse_projection(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device=device, dtype=dtype, **kwargs,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A long short-term memory. See :class:`RNN` for the arguments.

    The state is a pair, hidden state and cell, (layers * directions, B, hidden_size) each. With ``proj_size``, each
    hidden state is multiplied by ``weight_hr.T``, which gives it that size.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> Hidden:
        """Return the shape of the cell for an input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input, the hidden state and the cell."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return both states with the sequences in another order."""
        return hx if permutation is None else self._each(hx, lambda state: state.index_select(1, permutation))

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        hidden = super()._zeros(input, batch_sizes)
        return hidden, input.new_zeros(self.get_expected_cell_size(input, batch_sizes))

    def _each(self, hx: Any, function: Any) -> Any:
        return function(hx[0]), function(hx[1])

    def _check_rank(self, hx: Any, batched: bool) -> None:
        rank = 3 if batched else 2
        if hx[0].ndim != rank or hx[1].ndim != rank:
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should also be {rank}-D but got "
                f"({hx[0].ndim}-D, {hx[1].ndim}-D) tensors"
            )


class GRU(RNNBase):
    """A network of gated recurrent units. See :class:`RNN` for the arguments, the state and the results.

    As in PyTorch, the reset gate multiplies ``h[t - 1] @ weight_hn.T + bias_hn``, after the product.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        _refuse_projection(kwargs)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype, **kwargs,
        )  # fmt: skip


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


# -- cells ------------------------------------------------------------------------------------------------------------
class RNNCellBase(Module):
    """The parameters of a cell: weight_ih (chunks * hidden, input), weight_hh (chunks * hidden, hidden), and biases.

    All are drawn from U(-k, k), k = 1 / sqrt(hidden_size).
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None
    nonlinearity = "tanh"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(candelabra.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(candelabra.empty(rows, hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias_ih", unset(bias, rows, device=device, dtype=dtype))
        self.register_parameter("bias_hh", unset(bias, rows, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _prepare(self, input: Tensor, states: Sequence[Tensor] | None, names: Sequence[str]) -> list[Tensor]:
        """Return the input and the states, zeros by default, as batches. Raises ``ValueError`` for other ranks."""
        if input.ndim not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for name, state in zip(names, states or (), strict=False):
            if state.ndim not in (1, 2):
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {state.ndim}D instead")
        rows = input if input.ndim == 2 else input.unsqueeze(0)
        if states is None:
            return [rows, *[input.new_zeros((rows.shape[0], self.hidden_size))] * len(names)]
        return [rows, *(state if input.ndim == 2 else state.unsqueeze(0) for state in states)]

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        options = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            options += f", bias={self.bias}"
        return options if self.nonlinearity == "tanh" else f"{options}, nonlinearity={self.nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of :class:`RNN`: input (B, input_size) or (input_size), and hidden state, to the next hidden state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        rows, state = self._prepare(input, None if hx is None else (hx,), ("hidden",))
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = candelabra.rnn_tanh_cell if self.nonlinearity == "tanh" else candelabra.rnn_relu_cell
        out = cell(rows, state, *self._weights())
        return out if input.ndim == 2 else out.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`: input (B, input_size) or (input_size), and the pair of states, to the next pair."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        rows, *states = self._prepare(input, None if hx is None else tuple(hx), ("hx[0]", "hx[1]"))
        h, c = candelabra.lstm_cell(rows, states, *self._weights())
        return (h, c) if input.ndim == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`: input (B, input_size) or (input_size), and hidden state, to the next hidden state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        rows, state = self._prepare(input, None if hx is None else (hx,), ("hidden",))
        out = candelabra.gru_cell(rows, state, *self._weights())
        return out if input.ndim == 2 else out.squeeze(0)


def __dir__() -> list[str]:
    return sorted(__all__)
