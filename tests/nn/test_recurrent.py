"""Functions of recurrent networks: errors of their arguments, derivatives of all results, the graph."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn._operators.recurrent import rnn_sequence
from candelabra.nn._operators.recurrent_gru import gru_sequence
from candelabra.nn._operators.recurrent_lstm import lstm_sequence, lstm_step

from tests.nn.network_samples import array, check_gradients, normal, tensor

PARAMS = [cd.zeros(12, 3), cd.zeros(12, 4), cd.zeros(12), cd.zeros(12)]
STATE = cd.zeros(1, 2, 4)
REST = (True, 1, 0.0, False, False)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cd.gru(cd.zeros(5, 2, 3), STATE, PARAMS[:3], *REST, False), "3 is no multiple of 4"),
        (lambda: cd.gru(cd.zeros(5, 2, 3), STATE, PARAMS * 2, *REST, False), "parameters: 2 layers, expected 1"),
        (lambda: cd.gru(cd.zeros(5, 2, 3), STATE[0], PARAMS, *REST, False), "Expected more hidden states in stacked"),
        (lambda: cd.gru(cd.zeros(5, 3), STATE, PARAMS, *REST, False), r"expected input of shape \(time, batch, inp"),
        (lambda: cd.gru(cd.zeros(0, 2, 3), STATE, PARAMS, *REST, False), "Expected sequence length to be larger than"),
        (lambda: cd.lstm(cd.zeros(5, 2, 3), [STATE], PARAMS, *REST, False), "lstm expects two hidden states"),
        (lambda: cd.lstm_cell(cd.zeros(2, 3), [STATE[0]], *PARAMS), "lstm_cell expects two hidden states"),
        (lambda: cd.gru(cd.zeros(5, 3), cd.tensor([2, 2]), STATE, PARAMS, *REST), "do not sum to the 5 rows"),
        (lambda: cd.gru(cd.zeros(3, 3), cd.tensor([1, 2]), STATE, PARAMS, *REST), "batch sizes that do not increase"),
        (lambda: cd.gru_cell(cd.zeros(2, 3), STATE[0], PARAMS[0][1:], PARAMS[1]),
         r"weight_ih first dim must be 3 \* hidden_size = 12, but got 11"),
        (lambda: cd.gru_cell(cd.zeros(2, 3), STATE[0], PARAMS[0], PARAMS[1][1:]),
         r"weight_hh first dim must be 3 \* hidden_size = 12, but got 11"),
        (lambda: rnn_sequence(cd.zeros(4), STATE[0], PARAMS[1], None, (2, 2), False, False), "expected a matrix of r"),
        (lambda: lstm_sequence(cd.zeros(2, 7), STATE[0], STATE[0], PARAMS[1], None, None, (2,), False),
         "expected the columns of four gates, got 7"),
        (lambda: gru_sequence(cd.zeros(2, 7), STATE[0], PARAMS[1], None, (2,), False),
         "expected the columns of three gates, got 7"),
        (lambda: lstm_step(cd.zeros(8), cd.zeros(2)), r"expected a matrix of states, got shape \[2\]"),
        (lambda: gru_sequence(cd.zeros(2, 12), STATE[0], PARAMS[1], cd.zeros(1), (2,), False),
         r"expected bias of shape \[12\], got \[1\]"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_errors(call: Any, text: str) -> None:
    """The errors name the argument and the expected shape."""
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("batch_sizes", [(2, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_all_results_of_an_lstm_have_derivatives(batch_sizes: tuple[int, ...], reverse: bool) -> None:
    """Hidden states, cells and gates, with a projection, agree with finite differences to second order."""
    rows, count = sum(batch_sizes), batch_sizes[0]
    shapes = (rows, 8), (count, 3), (count, 2), (8, 3), (3, 2), (8,)

    def call(*args: Any) -> Any:
        return cd.cat(tuple(lstm_sequence(*args, batch_sizes, reverse)), 1)

    check_gradients(call, *(normal(*shape, seed=3) * 0.5 for shape in shapes))


@pytest.mark.parametrize("reverse", [False, True])
def test_all_results_of_a_gru_have_derivatives(reverse: bool) -> None:
    """Hidden states and gates agree with finite differences to second order."""
    shapes = (6, 9), (3, 3), (9, 3), (9,)

    def call(*args: Any) -> Any:
        return cd.cat(tuple(gru_sequence(*args, (3, 2, 1), reverse)), 1)

    check_gradients(call, *(normal(*shape, seed=5) * 0.5 for shape in shapes))


def test_a_layer_is_one_node_of_the_graph() -> None:
    """The number of nodes does not depend on the number of time steps."""
    sizes = []
    for length in (2, 20):
        weights = [cd.zeros(16, columns).requires_grad_() for columns in (3, 4)]
        out, _, _ = cd.lstm(cd.ones(length, 2, 3), [STATE, STATE], weights, False, 1, 0.0, True, False, False)
        seen, waiting = set(), [out.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is not None and node not in seen:
                seen.add(node)
                waiting += [n for n, _ in node.next_functions]
        sizes.append(len(seen))
    assert sizes[0] == sizes[1]


def test_half_precision_computes_in_float32() -> None:
    """The result of float16 is that of float32, rounded; it does not overflow in between."""
    rng_args = [normal(*shape, seed=7) for shape in ((6, 8), (2, 2), (2, 2), (8, 2))]
    half = [a.astype(np.float16) for a in rng_args]
    found = lstm_sequence(*map(tensor, half), None, None, (2, 2, 2), False)
    wide = lstm_sequence(*(tensor(a.astype(np.float32)) for a in half), None, None, (2, 2, 2), False)
    for a, b in zip(found, wide, strict=True):
        assert a.dtype is cd.float16
        np.testing.assert_allclose(array(a).astype(np.float64), array(b), rtol=2e-3, atol=1e-4)
