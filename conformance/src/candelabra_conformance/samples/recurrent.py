"""Samples of recurrent networks: sequences of one length and of several, in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ORDINARY, ZERO_SIZE, Sample, sample

Ints = tuple[int, ...]
NETWORKS: Final = ("lstm", "gru", "rnn_tanh", "rnn_relu")
GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
only(
    lambda d: d.category == FLOATING,
    *[f"{network}{form}" for network in NETWORKS for form in ("_padded", "_packed", "_cell")],
)


class RecurrentCase(NamedTuple):
    """The number of sequences at each time step, the size of the state, the direction."""

    batch_sizes: Ints
    width: int
    reverse: bool
    kind: str = ORDINARY

    @property
    def rows(self) -> int:
        return sum(self.batch_sizes)

    @property
    def sequences(self) -> int:
        return self.batch_sizes[0]

    @property
    def gradient(self) -> bool:
        return self.kind in (ORDINARY, LENGTH_ONE)


CASES: Final = (
    RecurrentCase((2, 2, 2), 3, False),
    RecurrentCase((2, 2, 2), 2, True),
    RecurrentCase((3, 2, 2, 1), 2, False),
    RecurrentCase((3, 2, 2, 1), 3, True),
    RecurrentCase((1,), 1, False, LENGTH_ONE),
    RecurrentCase((1, 1), 2, True, LENGTH_ONE),
    RecurrentCase((0, 0), 2, False, ZERO_SIZE),
    RecurrentCase((2, 1), 0, True, ZERO_SIZE),
    RecurrentCase((33, 33, 33, 33), 31, False, LARGE),
    RecurrentCase((70, 66, 40, 40, 1), 17, True, LARGE),
)


def _weight(t: Maker, *shape: int) -> Array:
    """Return weights that are so small that the gates do not saturate: then derivatives would be very small."""
    bound = 1.0 / max(shape[-1], 2)
    return t(*shape, low=-bound, high=bound)


# -- the plain recurrent network --------------------------------------------------------------------------------------
@inputs("rnn_sequence")
def plain(t: Maker) -> Iterator[Sample]:
    """Yield every case with tanh and relu, with and without bias."""
    for number, case in enumerate(CASES):
        n, relu = case.width, number % 2 == 1
        bias = None if number % 3 == 1 else t(n)
        args = t(case.rows, n), t(case.sequences, n), _weight(t, n, n), bias, case.batch_sizes, case.reverse, relu
        yield sample(*args, kind=case.kind, gradient=case.gradient)


@inputs("rnn_sequence_backward")
def plain_backwards(t: Maker) -> Iterator[Sample]:
    """Yield gradients and hidden states of every case."""
    for number, case in enumerate(CASES):
        n = case.width
        hidden = t(case.rows, n, low=-0.9, high=0.9)
        args = t(case.rows, n), hidden, t(case.sequences, n), _weight(t, n, n), case.batch_sizes, case.reverse
        yield sample(*args, number % 2 == 1, kind=case.kind, gradient=case.kind == ORDINARY)


# -- the LSTM ---------------------------------------------------------------------------------------------------------
@inputs("lstm_sequence")
def remembered(t: Maker) -> Iterator[Sample]:
    """Yield every case with and without a projection, with and without bias."""
    for number, case in enumerate(CASES):
        n = case.width
        outputs = n + 1 if number % 2 else n
        projection = _weight(t, outputs, n) if number % 2 else None
        bias = None if number % 3 == 1 else t(4 * n)
        state = t(case.sequences, outputs), t(case.sequences, n)
        args = t(case.rows, 4 * n), *state, _weight(t, 4 * n, outputs), projection, bias, case.batch_sizes, case.reverse
        yield sample(*args, kind=case.kind, gradient=case.gradient)


@inputs("lstm_sequence_backward")
def remembered_backwards(t: Maker) -> Iterator[Sample]:
    """Yield every case, with gradients of all results and of some."""
    for number, case in enumerate(CASES):
        n = case.width
        outputs = n + 1 if number % 2 else n
        given = [
            t(case.rows, size) if number % 4 in present else None
            for size, present in ((outputs, (0, 1, 3)), (n, (0, 2)), (4 * n, (0, 3)))
        ]
        args = (
            t(case.rows, 4 * n, low=0.1, high=0.9), t(case.rows, n), t(case.sequences, n), _weight(t, 4 * n, outputs),
            _weight(t, outputs, n) if number % 2 else None, *given, case.batch_sizes, case.reverse,
        )  # fmt: skip
        yield sample(*args, kind=case.kind, gradient=case.kind == ORDINARY)


# -- the GRU ----------------------------------------------------------------------------------------------------------
@inputs("gru_sequence")
def gated(t: Maker) -> Iterator[Sample]:
    """Yield every case with and without bias."""
    for number, case in enumerate(CASES):
        n = case.width
        bias = None if number % 3 == 1 else t(3 * n)
        args = t(case.rows, 3 * n), t(case.sequences, n), _weight(t, 3 * n, n), bias, case.batch_sizes, case.reverse
        yield sample(*args, kind=case.kind, gradient=case.gradient)


@inputs("gru_sequence_backward")
def gated_backwards(t: Maker) -> Iterator[Sample]:
    """Yield every case, with gradients of both results and of one."""
    for number, case in enumerate(CASES):
        n = case.width
        given = [
            t(case.rows, size) if number % 3 in present else None for size, present in ((n, (0, 1)), (4 * n, (0, 2)))
        ]
        args = (
            t(case.rows, 4 * n, low=0.1, high=0.9), t(case.rows, n), t(case.sequences, n), _weight(t, 3 * n, n), *given,
            case.batch_sizes, case.reverse,
        )  # fmt: skip
        yield sample(*args, kind=case.kind, gradient=case.kind == ORDINARY)


# -- single steps after the products ----------------------------------------------------------------------------------
STEPS: Final = ((2, 3, ORDINARY), (1, 1, LENGTH_ONE), (0, 2, ZERO_SIZE), (3, 0, ZERO_SIZE), (33, 31, LARGE))
"""The number of sequences, the size of the state."""


@inputs("lstm_step")
def remembering(t: Maker) -> Iterator[Sample]:
    """Yield sums and cells."""
    for rows, n, kind in STEPS:
        yield sample(t(rows, 4 * n), t(rows, n), kind=kind, gradient=kind == ORDINARY)


@inputs("lstm_step_backward")
def remembering_backwards(t: Maker) -> Iterator[Sample]:
    """Yield gradients of all results and of the hidden state only."""
    for rows, n, kind in STEPS:
        for with_cell, with_gates in ((True, False), (False, False), (True, True), (False, True)):
            given = t(rows, n) if with_cell else None, t(rows, 4 * n) if with_gates else None
            args = t(rows, 4 * n, low=0.1, high=0.9), t(rows, n), t(rows, n), t(rows, n)
            yield sample(*args, *given, kind=kind, gradient=kind == ORDINARY)


@inputs("gru_step")
def gating(t: Maker) -> Iterator[Sample]:
    """Yield both products and the state."""
    for rows, n, kind in STEPS:
        yield sample(t(rows, 3 * n), t(rows, 3 * n), t(rows, n), kind=kind, gradient=kind == ORDINARY)


@inputs("gru_step_backward")
def gating_backwards(t: Maker) -> Iterator[Sample]:
    """Yield gradients of both results and of the hidden state only."""
    for rows, n, kind in STEPS:
        for with_gates in (True, False):
            given = t(rows, 4 * n) if with_gates else None
            args = t(rows, 4 * n, low=0.1, high=0.9), t(rows, n), t(rows, n), given
            yield sample(*args, kind=kind, gradient=kind == ORDINARY)


# -- shapes that do not match -----------------------------------------------------------------------------------------
def _wrong(notes: tuple[str, ...], right: tuple[Any, ...], wrong: tuple[Any, ...]) -> Iterator[Sample]:
    """Yield the arguments, each time with another one replaced by a wrong one; ``...`` in place of it skips it."""
    for number, (note, value) in enumerate(zip(notes, wrong, strict=True)):
        if value is not ...:
            yield sample(*right[:number], value, *right[number + 1 :], note=note)


@mistakes("rnn_sequence")
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 3), t(3, 3), t(3, 3), t(3), (3, 2), False, False
    wrong = t(5, 1), t(1, 3), t(1, 3), t(1), (2, 3)
    yield from _wrong(("columns", "state", "weight", "bias", "increasing sizes", "", ""), right, (*wrong, ..., ...))
    yield sample(t(5), *right[1:], note="a vector")
    yield sample(*right[:4], (3, 1), False, False, note="another number of rows")


@mistakes("rnn_sequence_backward")
def unfit_backwards(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 3), t(5, 3), t(3, 3), t(3, 3), (3, 2), False, False
    wrong = t(1, 3), t(5, 2), t(1, 3), t(3, 1), (4, 2), ..., ...
    yield from _wrong(("gradient", "hidden", "state", "weight", "sizes", "", ""), right, wrong)


@mistakes("lstm_sequence")
def unfit_lstm(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 8), t(3, 3), t(3, 2), t(8, 3), t(3, 2), t(8), (3, 2), False
    wrong = t(5, 7), t(1, 3), t(3, 1), t(8, 1), None, t(1), (3, 3), ...
    yield from _wrong(("columns", "state", "cell", "weight", "no projection", "bias", "sizes", ""), right, wrong)


@mistakes("lstm_sequence_backward")
def unfit_lstm_backwards(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 8), t(5, 2), t(3, 2), t(8, 2), None, t(5, 2), t(5, 2), t(5, 8), (3, 2), False
    wrong = t(5, 7), t(5, 1), t(1, 2), t(1, 2), t(3, 2), t(1, 2), t(5, 1), t(1, 8), (3, 1), ...
    notes = (
        "gates",
        "cells",
        "cell",
        "weight",
        "projection",
        "hidden",
        "cells' gradient",
        "gates' gradient",
        "sizes",
        "",
    )
    yield from _wrong(notes, right, wrong)


@mistakes("lstm_step")
def unfit_lstm_step(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    yield sample(t(2, 8), t(1, 2), note="rows")
    yield sample(t(2, 6), t(2, 2), note="columns")
    yield sample(t(8), t(2), note="vectors")


@mistakes("lstm_step_backward")
def unfit_lstm_step_backwards(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(2, 8), t(2, 2), t(2, 2), t(2, 2), t(2, 2), t(2, 8)
    wrong = t(2, 6), t(1, 2), t(2, 1), t(1, 2), t(2, 1), t(1, 8)
    yield from _wrong(("gates", "cell", "last", "hidden", "cell's gradient", "gates' gradient"), right, wrong)


@mistakes("gru_step")
def unfit_gru_step(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(2, 6), t(2, 6), t(2, 2)
    yield from _wrong(("projected", "products", "last"), right, (t(1, 6), t(2, 3), t(2, 1)))
    yield sample(t(6), t(6), t(2), note="vectors")


@mistakes("gru_step_backward")
def unfit_gru_step_backwards(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(2, 8), t(2, 2), t(2, 2), t(2, 8)
    yield from _wrong(("gates", "last", "hidden", "gates' gradient"), right, (t(2, 6), t(1, 2), t(2, 1), t(1, 8)))


@mistakes("gru_sequence")
def unfit_gru(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 6), t(3, 2), t(6, 2), t(6), (3, 2), False
    wrong = t(5, 7), t(1, 2), t(6, 1), t(1), (3, 1), ...
    yield from _wrong(("columns", "state", "weight", "bias", "sizes", ""), right, wrong)


@mistakes("gru_sequence_backward")
def unfit_gru_backwards(t: Maker) -> Iterator[Sample]:
    """Yield one argument of another shape."""
    right = t(5, 8), t(5, 2), t(3, 2), t(6, 2), t(5, 2), t(5, 8), (3, 2), False
    wrong = t(5, 2), t(5, 1), t(1, 2), t(6, 1), t(1, 2), t(5, 1), (4, 2), ...
    yield from _wrong(("gates", "hidden", "state", "weight", "gradient", "gates' gradient", "sizes", ""), right, wrong)


# -- networks and cells -----------------------------------------------------------------------------------------------
def _params(t: Maker, network: str, inputs: int, width: int, layers: int, directions: int, biases: bool) -> list[Array]:
    rows = GATES[network] * width
    params = []
    for number in range(layers * directions):
        into = inputs if number < directions else width * directions
        params += [_weight(t, rows, into), _weight(t, rows, width), *([t(rows), t(rows)] if biases else [])]
    return params


def _states(t: Maker, network: str, *shape: int) -> Any:
    return [t(*shape), t(*shape)] if network == "lstm" else t(*shape)


@inputs(*[f"{network}_padded" for network in NETWORKS])
def batches(t: Maker) -> Iterator[Sample]:
    """Yield one layer and two, one direction and two, with and without biases, and the batch as the first dim."""
    network = t.operator.removesuffix("_padded")
    for layers, bidirectional, biases, batch_first in (
        (1, False, True, False),
        (2, True, True, True),
        (1, True, False, False),
    ):
        directions = 1 + bidirectional
        params = _params(t, network, 2, 3, layers, directions, biases)
        hx = _states(t, network, layers * directions, 2, 3)
        x = t(2, 3, 2) if batch_first else t(3, 2, 2)
        yield sample(x, hx, params, biases, layers, 0.0, True, bidirectional, batch_first)


@inputs(*[f"{network}_packed" for network in NETWORKS])
def packed(t: Maker) -> Iterator[Sample]:
    """Yield sequences of several lengths, in one direction and in two."""
    network = t.operator.removesuffix("_packed")
    for layers, bidirectional in ((1, False), (2, True)):
        directions = 1 + bidirectional
        params = _params(t, network, 2, 3, layers, directions, True)
        hx = _states(t, network, layers * directions, 3, 3)
        yield sample(t(6, 2), t.index(3, 2, 1), hx, params, True, layers, 0.0, False, bidirectional)


@mistakes(*[f"{network}_padded" for network in NETWORKS])
def no_networks(t: Maker) -> Iterator[Sample]:
    """Yield parameters and states of another number of layers, no time steps, and a matrix."""
    network = t.operator.removesuffix("_padded")
    params, hx = _params(t, network, 2, 3, 1, 1, True), _states(t, network, 1, 2, 3)
    rest = True, 1, 0.0, False, False, False
    yield sample(t(3, 2, 2), hx, params[:3], *rest, note="three parameters")
    yield sample(t(3, 2, 2), hx, params * 2, *rest, note="two layers of parameters")
    yield sample(t(3, 2, 2), _states(t, network, 2, 2, 3), params, *rest, note="two layers of states")
    yield sample(t(0, 2, 2), hx, params, *rest, note="no steps")
    yield sample(t(3, 2), hx, params, *rest, note="a matrix")


@inputs(*[f"{network}_cell" for network in NETWORKS])
def single_steps(t: Maker) -> Iterator[Sample]:
    """Yield steps with and without biases, and an empty batch."""
    network = t.operator.removesuffix("_cell")
    for count, biases in ((2, True), (3, False), (0, True)):
        params = _params(t, network, 4, 3, 1, 1, biases)
        kind = ORDINARY if count else ZERO_SIZE
        yield sample(t(count, 4), _states(t, network, count, 3), *params, kind=kind, gradient=count > 0)


@mistakes(*[f"{network}_cell" for network in NETWORKS])
def no_steps(t: Maker) -> Iterator[Sample]:
    """Yield sizes that do not match."""
    network = t.operator.removesuffix("_cell")
    rows = GATES[network] * 3
    weights = t(rows, 4), t(rows, 3)
    yield sample(t(2, 5), _states(t, network, 2, 3), *weights, note="input size")
    yield sample(t(2, 4), _states(t, network, 3, 3), *weights, note="batch")
    yield sample(t(2, 4), _states(t, network, 2, 2), *weights, note="hidden size")
    yield sample(t(2, 4), _states(t, network, 2, 3), t(rows + 1, 4), t(rows, 3), note="rows of weight_ih")
    yield sample(t(2, 4), _states(t, network, 2, 3), t(rows, 4), t(rows + 1, 3), note="rows of weight_hh")
    yield sample(t(4), _states(t, network, 2, 3), *weights, note="a vector")
