"""Sequences of recurrent networks as one kernel for each step, compared with the bodies of the operators."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from candelabra.backend import declared
from candelabra.dtypes import float32, float64
from candelabra.library import OPERATORS, own_kernels
from candelabra_clike.kernels.recurrent import steps_of
from candelabra_cpu.kernels import table
from candelabra_native.kernels import contributed

from tests.nn.network_samples import array, tensor

NATIVE = contributed(declared(table()))
LENGTHS = {
    "equal": (3, 3, 3), "falling": (5, 3, 1), "one step": (2,), "some end": (30, 29, 29), "many rows": (50, 50),
    "an empty step": (4, 0),
}  # fmt: skip
"""Batch sizes: fewer rows than a tile of registers has, and rows of several tiles and work-items."""
BOUNDS = {float32: 1e-5, float64: 1e-13}
"""The greatest difference, of values that sum up to 2,000 products and are of the order of 10."""


class Case:
    """Random arrays of one dtype, and the comparison of the two kernels of an operator."""

    def __init__(self, rng: np.random.Generator, d: Any) -> None:
        self.rng = rng
        self.dtype = d

    def array(self, *shape: int, present: bool = True) -> Any:
        return (self.rng.standard_normal(shape) * 0.5).astype(self.dtype.name) if present else None

    def same(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        """Return the results of the operator's body, after a comparison with those of the native kernel."""
        body, native = OPERATORS[name].declared, NATIVE[name].for_dtype(self.dtype)
        tensors = [tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
        with own_kernels():
            out = body(*tensors)
        expected = tuple(array(t) for t in (out if isinstance(out, tuple) else (out,)))
        found = native(*arguments)
        for a, b in zip(expected, found if isinstance(found, tuple) else (found,), strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            scale = max(1.0, float(np.abs(a).max(initial=0)))
            assert float(np.abs(a - b).max(initial=0)) <= BOUNDS[self.dtype] * scale
        return expected


@pytest.fixture(params=[float32, float64], ids=["float32", "float64"])
def case(request: pytest.FixtureRequest, rng: np.random.Generator) -> Case:
    """Arrays of each dtype that C serves."""
    return Case(rng, request.param)


every_layout = pytest.mark.parametrize(
    ("width", "lengths", "reverse"),
    [(w, n, r) for w, n, r in product((1, 16, 40), LENGTHS, (False, True))],
)


@every_layout
def test_an_lstm_gives_what_its_body_gives(case: Case, width: int, lengths: str, reverse: bool) -> None:
    """States, cells and gates, and their gradients with any of the given ones missing."""
    sizes = LENGTHS[lengths]
    rows, count = sum(sizes), sizes[0]
    weight, hx, cx = case.array(4 * width, width), case.array(count, width), case.array(count, width)
    bias = case.array(4 * width, present=reverse)
    projected = case.array(rows, 4 * width)
    _, cells, gates = case.same("lstm_sequence", projected, hx, cx, weight, None, bias, sizes, reverse)
    for given in ((True, False, False), (False, True, False), (True, True, True)):
        grads = [case.array(rows, n * width, present=g) for n, g in zip((1, 1, 4), given, strict=True)]
        case.same("lstm_sequence_backward", gates, cells, cx, weight, None, *grads, sizes, reverse)


@every_layout
def test_a_gru_gives_what_its_body_gives(case: Case, width: int, lengths: str, reverse: bool) -> None:
    """States and gates, and their gradients with any of the given ones missing."""
    sizes = LENGTHS[lengths]
    rows, count = sum(sizes), sizes[0]
    weight, hx = case.array(3 * width, width), case.array(count, width)
    bias = case.array(3 * width, present=reverse)
    hidden, gates = case.same("gru_sequence", case.array(rows, 3 * width), hx, weight, bias, sizes, reverse)
    for given in ((True, False), (False, True), (True, True)):
        grads = [case.array(rows, n * width, present=g) for n, g in zip((1, 4), given, strict=True)]
        case.same("gru_sequence_backward", gates, hidden, hx, weight, *grads, sizes, reverse)


@every_layout
@pytest.mark.parametrize("relu", [False, True], ids=["tanh", "relu"])
def test_a_plain_network_gives_what_its_body_gives(
    case: Case, width: int, lengths: str, reverse: bool, relu: bool
) -> None:
    """States, and their gradient."""
    sizes = LENGTHS[lengths]
    rows, count = sum(sizes), sizes[0]
    weight, hx = case.array(width, width), case.array(count, width)
    bias = case.array(width, present=not reverse)
    (hidden,) = case.same("rnn_sequence", case.array(rows, width), hx, weight, bias, sizes, reverse, relu)
    case.same("rnn_sequence_backward", case.array(rows, width), hidden, hx, weight, sizes, reverse, relu)


def test_arrays_of_any_layout_are_served(case: Case) -> None:
    """A transposed weight, an expanded state, and rows of a larger array."""
    weight, hx = case.array(5, 5).T, np.broadcast_to(case.array(5), (2, 5))
    projected = case.array(6, 10)[:, ::2]
    case.same("rnn_sequence", projected, hx, weight, None, (2, 2, 2), False, False)


def test_what_is_not_one_kernel_is_declined(case: Case) -> None:
    """A projection of the hidden state, and shapes that do not match, which the rule of the operator describes."""
    projected, state = case.array(4, 8), case.array(2, 2)
    lstm = NATIVE["lstm_sequence"].for_dtype(case.dtype)
    weight = case.array(8, 3)
    arguments = (projected, case.array(2, 3), state, weight, case.array(3, 2), None, (2, 2), False)
    assert lstm(*arguments) is NotImplemented
    assert lstm(projected, state, state, weight, None, None, (2, 2), False) is NotImplemented
    assert lstm(projected, state, state, case.array(8, 2), None, None, (1, 3), False) is NotImplemented


def test_steps_are_in_the_order_of_the_recurrence() -> None:
    """The first row and the number of rows of each."""
    assert steps_of((3, 2), False) == [(0, 3), (3, 2)]
    assert steps_of((3, 2), True) == [(3, 2), (0, 3)]
