"""Steps of recurrent networks: the same functions with and without products, and what is refused."""

from itertools import product

import pytest
from candelabra.dtypes import dtype, float32, float64
from candelabra_clike.language import ExpressionError
from candelabra_clike.templates import recurrences
from candelabra_clike.templates.gate_steps import GRU, LSTM, GateStep, gru_backward, lstm_backward
from candelabra_clike.templates.recurrences import Recurrence, RowArray

BOOLS = (False, True)


def test_the_expressions_of_all_steps_have_the_right_types() -> None:
    """A step of a wrong type raises ``ExpressionError``, with any of the arrays that it may have."""
    steps = [lstm_backward(*flags) for flags in product(BOOLS, repeat=2)] + [gru_backward(flag) for flag in BOOLS]
    assert len({step.name for step in steps}) == 6
    sequences = [recurrences.rnn(*flags) for flags in product(BOOLS, repeat=2)]
    sequences += [recurrences.lstm_gradient(*flags) for flags in product(BOOLS, repeat=3)]
    sequences += [recurrences.gru_gradient(*flags) for flags in product(BOOLS, repeat=2)]
    sequences += [
        make(flag) for make in (recurrences.lstm, recurrences.gru, recurrences.rnn_gradient) for flag in BOOLS
    ]
    assert len({step.name for step in sequences}) == 22


def test_a_gate_is_computed_once_and_stored() -> None:
    """The gates of an LSTM are its results and factors of the cell."""
    text = LSTM.source(float32, serial=True).body
    assert text.count("sigmoid_f32(") == 3
    assert text.count("tanh_f32(") == 2
    assert "const f32 c4 = c1 * last_0 + c2 * c3;" in text
    assert GRU.source(float32, serial=False).body.count("sigmoid_f32(") == 2


def test_an_optional_array_adds_to_the_sums_if_the_step_has_it() -> None:
    """Only elements that the function asks for are loaded."""
    assert "p_0 + b_0 + sum_0" in recurrences.rnn(True, False).source(float32, 8, 16).body
    without = recurrences.rnn(False, False).source(float32, 8, 16).body
    assert "tanh_f32(p_0 + sum_0)" in without
    assert "hidden_0" not in without


@pytest.mark.parametrize(
    ("d", "lanes", "registers", "vector"),
    [(float32, 16, 32, "f32x16"), (float32, 8, 16, "f32x8"), (float64, 16, 32, "f64x8"), (float64, 8, 16, "f64x4")],
)
def test_sums_are_vectors_of_one_register(d: dtype, lanes: int, registers: int, vector: str) -> None:
    """As many rows as fit are multiplied at a time, and fewer of them have statements of their own."""
    body = recurrences.lstm(False).source(d, lanes, registers).body
    rows = {32: 6, 16: 3}[registers]
    assert f"{vector} c{rows - 1}_3 = ({vector})(0);" in body
    assert f"if (here == {rows}) {{" in body
    assert f"c{rows}_0" not in body
    assert f"lane += {lanes * 4 // d.itemsize}) {{" in body


def test_a_wrong_step_names_itself_the_type_and_the_line() -> None:
    """The error comes where the step is declared, and not from a compiler."""
    one = (("s", 1),), (("out", 1),)
    with pytest.raises(
        ExpressionError, match=r"of 'cell' in f32 \(test_recurrent_cells\.py, line \d+\): expected 1 values, got 2"
    ):
        GateStep("cell", *one, lambda s: (s, s))
    with pytest.raises(ExpressionError, match=r"of 'cell' .*: there is no parameter 'gates'"):
        GateStep("cell", *one, lambda s, gates: s)
    with pytest.raises(ExpressionError, match=r"of 'cell' .*: expected a value of type f32, got bool"):
        GateStep("cell", *one, lambda s: s > 0)
    with pytest.raises(ExpressionError, match=r"of 'steps' in f32 .*: expected 2 values, got 1"):
        Recurrence("steps", 1, (RowArray("out", 2, written=True),), lambda sum: sum)
