"""Recurrent networks and their cells: figures of PyTorch 2.13, states, printed forms, arguments, empty batches."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tests.nn.network_samples import array, check_gradients

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm": ("LSTM", {}),
    "lstm_bidirectional": ("LSTM", {"num_layers": 2, "bidirectional": True}),
    "lstm_projected": ("LSTM", {"num_layers": 2, "proj_size": 2, "bidirectional": True, "bias": False}),
    "gru": ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru_one": ("GRU", {"bias": False}),
    "rnn_tanh": ("RNN", {"num_layers": 2}),
    "rnn_relu": ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
}
FIGURES = {
    ("lstm", "padded"): (-0.885465882447, -0.472136148201, 1.19030858272, 5.69961657892, 68.2198590448),
    ("lstm", "packed"): (-0.361251412845, -0.28834024351, 1.26582459056, 5.59374161422, 53.8171497944),
    ("lstm_bidirectional", "padded"): (-3.68540558611, -2.34460351807, -0.463922877519, 16.9894944051, 330.926699869),
    ("lstm_bidirectional", "packed"): (-2.0882523989, -1.52587100889, 2.04152555313, 14.6269847519, 246.910738354),
    ("lstm_projected", "padded"): (0.0085071767333, -0.0277067877368, -5.05992632512, 11.9455951162, 45.4887915106),
    ("lstm_projected", "packed"): (0.00282387032878, -0.0285992889242, -3.8226743335, 8.84947655625, 35.0849442927),
    ("gru", "padded"): (-0.5957972218, 5.56104518719, 8.30675539918, 5.0539613843, 161.5272748),
    ("gru", "packed"): (-0.0166220930881, 5.19660916529, 6.76978205924, 3.43632187726, 114.025032371),
    ("gru_one", "padded"): (1.90405970111, 0.608487168866, 5.41596774435, 12.6206939718, 26.4798182123),
    ("gru_one", "packed"): (1.43511152031, 0.662164242363, 3.39492691491, 7.69952703773, 17.4828536884),
    ("rnn_tanh", "padded"): (18.0099407455, 5.18812429799, 16.3296892186, 3.4104865425, 184.21822975),
    ("rnn_tanh", "packed"): (11.4216366152, 4.44537263691, 11.5886633164, 2.49178897266, 127.864412542),
    ("rnn_relu", "padded"): (37.3352815509, 13.6312570483, 64.2828053157, 59.6765172202, 600.783683928),
    ("rnn_relu", "packed"): (23.116228608, 12.0885723283, 42.0722383364, 39.1183304107, 356.108685963),
}
"""Of PyTorch 2.13: sums of the output and of the first state, the loss, sums of the absolute gradients of the input and
of the parameters."""


def filled(shape: Any, phase: float) -> Any:
    """Return numbers between -0.5 and 0.5 that the test of PyTorch's figures has used."""
    count = cd.zeros(shape).numel()
    return (cd.arange(count, dtype=cd.float64) * 0.7 + phase).sin().reshape(shape) * 0.5


def network(kind: str, **options: Any) -> Any:
    """Return a network with 3 inputs and 4 hidden values, with fixed parameters in float64."""
    made = getattr(nn, kind)(3, 4, dtype=cd.float64, **options)
    with cd.no_grad():
        for number, parameter in enumerate(made.parameters()):
            parameter.copy_(filled(parameter.shape, number))
    return made


def pair(hidden: Any) -> tuple[Any, ...]:
    """Return the states of a network as a tuple."""
    return hidden if isinstance(hidden, tuple) else (hidden,)


@pytest.mark.parametrize(("name", "form"), FIGURES)
def test_networks_give_the_figures_of_pytorch(name: str, form: str) -> None:
    """Results and gradients of padded and packed sequences agree with PyTorch 2.13 to 11 digits."""
    kind, options = NETWORKS[name]
    made = network(kind, **options)
    x = (filled((3, 3, 3), 1) * 2).requires_grad_()
    given: Any = x
    if form == "packed":
        given = pack_padded_sequence(x, [2, 3, 1], batch_first=made.batch_first, enforce_sorted=False)
    out, hidden = made(given)
    out = out.data if form == "packed" else out
    loss = (out**2).sum()
    for weight, state in enumerate(pair(hidden), 1):
        loss = loss + state.sum() * weight
    loss.backward()
    of_parameters = sum(p.grad.abs().sum().item() for p in made.parameters())
    found = (out.sum().item(), pair(hidden)[0].sum().item(), loss.item(), x.grad.abs().sum().item(), of_parameters)
    assert found == pytest.approx(FIGURES[name, form], rel=1e-10)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_packed_sequence_equals_each_sequence_alone(kind: str) -> None:
    """The hidden states of a padded batch with lengths are those of unbatched calls, and states come in its order."""
    made = network(kind, num_layers=2, bidirectional=True)
    x, lengths = filled((5, 3, 3), 0.3), [2, 5, 4]
    packed, hidden = made(pack_padded_sequence(x, lengths, enforce_sorted=False))
    assert isinstance(packed, PackedSequence)
    padded, found = pad_packed_sequence(packed)
    assert found.tolist() == lengths
    for number, length in enumerate(lengths):
        out, states = made(x[:length, number])
        assert cd.allclose(padded[:length, number], out, rtol=1e-12)
        for state, own in zip(pair(hidden), pair(states), strict=True):
            assert cd.allclose(state[:, number], own, rtol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_given_state_continues_a_sequence(kind: str) -> None:
    """Two halves of a sequence, the second from the state after the first, equal the whole; batch_first transposes."""
    made, x = network(kind, batch_first=True), filled((2, 6, 3), 0.1)
    whole, last = made(x)
    first, state = made(x[:, :4])
    second, end = made(x[:, 4:], state)
    assert cd.allclose(cd.cat([first, second], 1), whole, rtol=1e-12)
    for a, b in zip(pair(end), pair(last), strict=True):
        assert cd.allclose(a, b, rtol=1e-12)
    columns = network(kind)(x.transpose(0, 1))[0]
    assert cd.allclose(columns.transpose(0, 1), whole, rtol=1e-12)
    unbatched, _ = made(x[1], tuple(s[:, 1] * 0 for s in pair(state)) if kind == "LSTM" else state[:, 1] * 0)
    assert cd.allclose(unbatched, whole[1], rtol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_networks_are_differentiable_twice(kind: str) -> None:
    """Derivatives with respect to the input, which is not contiguous, and to parameters are right to second order."""
    made = network(kind, bidirectional=True, **({"proj_size": 2} if kind == "LSTM" else {}))
    names = [name for name, _ in made.named_parameters()]

    def call(x: Any, *parameters: Any) -> Any:
        out, hidden = with_parameters(made, dict(zip(names, parameters, strict=True)), x.transpose(0, 1))
        return cd.cat([out.reshape(-1), *(state.reshape(-1) for state in pair(hidden))])

    check_gradients(call, array(filled((2, 3, 3), 0.2)), *(array(p.detach()) for p in made.parameters()))


def with_parameters(module: Any, parameters: dict[str, Any], x: Any) -> Any:
    """Call a network with other tensors in place of its parameters."""
    changed = copy.copy(module)
    object.__setattr__(changed, "_parameters", parameters)
    return changed(x)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_an_empty_batch_gives_empty_results(kind: str) -> None:
    """The gradients of the parameters are zeros."""
    made = network(kind, num_layers=2)
    out, hidden = made(cd.zeros(3, 0, 3, dtype=cd.float64))
    assert out.shape == (3, 0, 4)
    assert pair(hidden)[0].shape == (2, 0, 4)
    out.sum().backward()
    assert all((p.grad == 0).all() for p in made.parameters())


def test_dropout_applies_between_layers_in_training_only() -> None:
    """With probability 1, the second layer sees zeros, and the first one gets no gradient."""
    made = network("LSTM", num_layers=2, dropout=1.0)
    x = filled((3, 2, 3), 0.4)
    out, _ = made(x)
    out.sum().backward()
    assert (made.weight_ih_l0.grad == 0).all()
    assert (made.bias_hh_l1.grad != 0).any()
    assert cd.allclose(out, made(x * 2)[0])
    assert not cd.allclose(made.eval()(x)[0], made(x * 2)[0])


def test_states_have_pytorchs_keys() -> None:
    """Keys are in PyTorch's order, with weight_hr for projections; all_weights groups the parameters."""
    made = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"]
    expected = [f"{n}_l{k}{suffix}" for k in (0, 1) for suffix in ("", "_reverse") for n in names]
    assert list(made.state_dict()) == expected
    assert [[tuple(p.shape) for p in group] for group in made.all_weights] == [
        [(16, inputs), (16, 2), (16,), (16,), (2, 4)] for inputs in (3, 3, 4, 4)
    ]
    assert list(nn.GRU(3, 4, bias=False).state_dict()) == ["weight_ih_l0", "weight_hh_l0"]
    assert list(nn.LSTMCell(3, 4).state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    assert list(nn.RNNCell(3, 4, bias=False).state_dict()) == ["weight_ih", "weight_hh"]
    made.flatten_parameters()
    assert all(p.abs().max() <= 0.5 for p in made.parameters())
    assert max(p.abs().max().item() for p in made.parameters()) > 0.45


def test_printed_forms_are_pytorchs() -> None:
    """Options are printed if they differ from their defaults."""
    made = nn.LSTM(3, 4, 2, bias=False, batch_first=True, dropout=0.25, bidirectional=True, proj_size=2)
    assert repr(made) == (
        "LSTM(3, 4, proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.25, bidirectional=True)"
    )
    assert repr(nn.RNN(3, 4, 2, "relu")) == "RNN(3, 4, num_layers=2)"
    assert repr(nn.RNNBase("GRU", 3, 4)) == "RNNBase(3, 4)"
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu", bias=False)) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    assert repr(nn.GRUCell(3, 4)) == "GRUCell(3, 4)"


def test_a_tensor_in_place_of_a_parameter_is_used() -> None:
    """Programs replace a parameter by a computed tensor, for example by weight dropout."""
    made = network("GRU")
    x = filled((2, 2, 3), 0.1)
    weight = made.weight_hh_l0
    del made._parameters["weight_hh_l0"]
    made.weight_hh_l0 = weight.detach() * 0
    assert not cd.allclose(made(x)[0], network("GRU")(x)[0])


# -- cells ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("cell", "kind"), [("LSTMCell", "LSTM"), ("GRUCell", "GRU"), ("RNNCell", "RNN")])
def test_cells_are_single_steps(cell: str, kind: str) -> None:
    """A cell with a network's parameters computes its steps, for batches and for vectors, from zeros by default."""
    made = network(kind)
    step = getattr(nn, cell)(3, 4, dtype=cd.float64)
    step.load_state_dict({name.removesuffix("_l0"): value for name, value in made.state_dict().items()})
    x = filled((3, 2, 3), 0.6)
    expected, state = made(x)[0], None
    for t in range(3):
        state = step(x[t], state)
        assert cd.allclose(pair(state)[0], expected[t], rtol=1e-12)
    alone = pair(step(x[0, 1]))[0]
    assert alone.shape == (4,)
    assert cd.allclose(alone, expected[0, 1], rtol=1e-12)
    assert pair(step(cd.zeros(0, 3, dtype=cd.float64)))[0].shape == (0, 4)


def test_a_cell_with_relu_clips_at_zero() -> None:
    """The result is the formula's; an unknown nonlinearity is an error of the call."""
    made = nn.RNNCell(3, 4, nonlinearity="relu", dtype=cd.float64)
    x, h = filled((2, 3), 0.1), filled((2, 4), 0.9)
    expected = (x @ made.weight_ih.t() + made.bias_ih + h @ made.weight_hh.t() + made.bias_hh).relu()
    assert cd.allclose(made(x, h), expected, rtol=1e-12)
    with pytest.raises(RuntimeError, match="Unknown nonlinearity: sine"):
        nn.RNNCell(3, 4, nonlinearity="sine")(cd.zeros(2, 3))


@pytest.mark.parametrize(
    ("cell", "arguments", "error", "text"),
    [
        ("LSTMCell", [(2, 2, 3)], ValueError, "LSTMCell: Expected input to be 1D or 2D, got 3D instead"),
        ("GRUCell", [(2, 3), (1, 2, 4)], ValueError, "GRUCell: Expected hidden to be 1D or 2D, got 3D instead"),
        ("GRUCell", [(2, 4)], RuntimeError, "input has inconsistent input_size: got 4 expected 3"),
        ("RNNCell", [(2, 3), (2, 5)], RuntimeError, "hidden0 has inconsistent hidden_size: got 5, expected 4"),
        ("RNNCell", [(2, 3), (3, 4)], RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3"),
        ("RNNCell", [(3,), (2, 4)], RuntimeError, "rnn_tanh_cell: expected matrices for the input and the hidden"),
    ],
)
def test_cells_refuse_other_shapes(cell: str, arguments: Any, error: type[Exception], text: str) -> None:
    """The texts are PyTorch's."""
    with pytest.raises(error, match=text):
        getattr(nn, cell)(3, 4)(*map(cd.zeros, arguments))


def test_an_lstm_cell_names_the_wrong_state() -> None:
    """The hidden state is hx[0], the cell hx[1]."""
    cell, x = nn.LSTMCell(3, 4), cd.zeros(2, 3)
    with pytest.raises(ValueError, match=r"LSTMCell: Expected hx\[1\] to be 1D or 2D, got 3D instead"):
        cell(x, (cd.zeros(2, 4), cd.zeros(1, 2, 4)))
    with pytest.raises(RuntimeError, match="hidden1 has inconsistent hidden_size: got 5, expected 4"):
        cell(x, (cd.zeros(2, 4), cd.zeros(2, 5)))


# -- wrong arguments --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"dropout": 2}, ValueError, r"dropout should be a number in range \[0, 1\]"),
        ({"dropout": True}, ValueError, r"dropout should be a number in range \[0, 1\]"),
        ({"input_size": 3.0}, TypeError, "input_size should be of type int, got: float"),
        ({"hidden_size": "a"}, TypeError, "hidden_size should be of type int, got: str"),
        ({"bias": 1}, TypeError, "bias should be of type bool, got: int"),
        ({"batch_first": "yes"}, TypeError, "batch_first should be of type bool, got: str"),
        ({"input_size": 0}, ValueError, "input_size must be greater than zero"),
        ({"hidden_size": -1}, ValueError, "hidden_size must be greater than zero"),
        ({"num_layers": 0}, ValueError, "num_layers must be greater than zero"),
        ({"proj_size": -1}, ValueError, "proj_size should be a positive integer or zero to disable projections"),
        ({"proj_size": 4}, ValueError, "proj_size has to be smaller than hidden_size"),
    ],
)
def test_networks_refuse_other_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """The texts are PyTorch's."""
    with pytest.raises(error, match=text):
        nn.LSTM(**{"input_size": 3, "hidden_size": 4, **arguments})


def test_other_networks_than_the_lstm_have_no_projection() -> None:
    """Unknown nonlinearities and modes are errors too."""
    for kind in (nn.RNN, nn.GRU):
        with pytest.raises(ValueError, match="proj_size argument is only supported for LSTM, not RNN or GRU"):
            kind(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="Unknown nonlinearity 'sine'"):
        nn.RNN(3, 4, nonlinearity="sine")
    with pytest.raises(ValueError, match="Unrecognized RNN mode: CNN"):
        nn.RNNBase("CNN", 3, 4)


def test_dropout_without_a_second_layer_is_a_warning() -> None:
    """It has no effect, since it applies between layers."""
    with pytest.warns(UserWarning, match=r"expects num_layers greater than 1, but got dropout=0.5 and num_layers=1"):
        nn.LSTM(3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.LSTM(3, 4, 2, dropout=0.5)


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "text"),
    [
        ("LSTM", [(3,)], ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        ("RNN", [(3,)], ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        ("GRU", [(5, 2, 4)], RuntimeError, r"input.size\(-1\) must be equal to input_size. Expected 3, got 4"),
        ("GRU", [(0, 2, 3)], RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
        ("GRU", [(5, 2, 3), (1, 3, 4)], RuntimeError, r"Expected hidden size \(1, 2, 4\), got \[1, 3, 4\]"),
        ("GRU", [(5, 2, 3), (2, 4)], RuntimeError, "For batched 3-D input, hx should also be 3-D but got 2-D tensor"),
        ("GRU", [(5, 3), (1, 2, 4)], RuntimeError, "For unbatched 2-D input, hx should also be 2-D but got 3-D"),
    ],
)
def test_networks_refuse_other_shapes(kind: str, arguments: Any, error: type[Exception], text: str) -> None:
    """The texts are PyTorch's."""
    with pytest.raises(error, match=text):
        getattr(nn, kind)(3, 4)(*map(cd.zeros, arguments))


def test_an_lstm_refuses_other_states() -> None:
    """The errors name hidden state and cell; a packed sequence has a matrix of data, and all have one dtype."""
    made, x, zeros = nn.LSTM(3, 4), cd.zeros(5, 2, 3), cd.zeros
    with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size \(1, 2, 4\), got \[1, 3, 4\]"):
        made(x, (zeros(1, 3, 4), zeros(1, 3, 4)))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(1, 2, 4\), got \[1, 2, 5\]"):
        made(x, (zeros(1, 2, 4), zeros(1, 2, 5)))
    with pytest.raises(RuntimeError, match=r"hx and cx should also be 3-D but got \(2-D, 2-D\) tensors"):
        made(x, (zeros(2, 4), zeros(2, 4)))
    with pytest.raises(ValueError, match=r"RNN input dtype \(candelabra.float64\) does not match weight dtype"):
        made(x.double())
    with pytest.raises(RuntimeError, match="input must have 2 dimensions, got 3"):
        made(PackedSequence(zeros(3, 1, 3), cd.tensor([2, 1])))


@pytest.mark.parametrize("name", NETWORKS)
def test_autocast_runs_networks_in_the_lower_precision(name: str) -> None:
    """Products and steps run in bfloat16 (a GRU's steps on the host in float32), and gradients are float32."""
    kind, options = NETWORKS[name]
    network = getattr(nn, kind)(3, 4, **options)
    x = cd.randn(5, 2, 3)
    with cd.autocast(cd.get_default_device().type, dtype=cd.bfloat16):
        out, _ = network(x)
    assert out.dtype is (cd.float32 if kind == "GRU" else cd.bfloat16)
    assert cd.allclose(out.float(), network(x)[0], atol=0.05)
    out.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype is cd.float32 for p in network.parameters())


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_autocast_runs_cells(kind: str) -> None:
    """A cell takes inputs in float32, whose product with the weights is in bfloat16."""
    cell = getattr(nn, kind)(3, 4)
    x = cd.randn(2, 3)
    with cd.autocast(cd.get_default_device().type, dtype=cd.bfloat16):
        got = cell(x)
    found, expected = (value[0] if kind == "LSTMCell" else value for value in (got, cell(x)))
    assert cd.allclose(found.float(), expected, atol=0.05)
