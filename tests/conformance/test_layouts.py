"""Memory layouts of samples: their strides, the samples that fit, and the layouts of the operands of one call."""

import re
from typing import Any

import numpy as np
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import (
    ALIASED,
    BASIC,
    BROADCAST_ALL,
    BROADCAST_MIDDLE,
    CHANNELS_LAST,
    CONTIGUOUS,
    MEMORY,
    MIXED,
    REPEATING,
    ROWS,
    fitted,
    layout_of,
    placed,
    repeated,
    to_layout,
)
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.properties import registry
from candelabra_conformance.properties.gradients import Cotangents, cotangents, cotangents_with
from candelabra_conformance.samples.sample import sample
from candelabra_conformance.suite import plan, run_case
from candelabra_conformance.transport import to_host

SHAPE = (2, 3, 4)
STRIDES = {
    ROWS: (21, 7, 1),
    CHANNELS_LAST: (12, 1, 3),
    BROADCAST_MIDDLE: (4, 0, 1),
    BROADCAST_ALL: (0, 0, 0),
}


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Return different float32 numbers."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("layout", STRIDES)
def test_a_layout_has_its_strides(layout: str) -> None:
    """Rows with gaps, channels last, and repeated dims have the strides of their names, and the array's values."""
    array = repeated(numbers(*SHAPE), layout) if layout in REPEATING else numbers(*SHAPE)
    tensor = to_layout(array, layout, "cpu")
    assert tensor.stride() == STRIDES[layout]
    assert np.array_equal(to_host(tensor), array)


@pytest.mark.parametrize("layout", MEMORY)
def test_arrays_that_do_not_fit_are_contiguous(layout: str) -> None:
    """An array without dims or elements, or with differing values in place of repeated ones, becomes contiguous."""
    assert layout_of(np.asarray(3.0), layout) == CONTIGUOUS
    assert np.array_equal(to_host(to_layout(np.ones((0, 3)), layout, "cpu")), np.ones((0, 3)))
    if layout in REPEATING:
        assert layout_of(numbers(*SHAPE), layout) == CONTIGUOUS


def test_mixed_operands_have_different_layouts() -> None:
    """In ``mixed``, operands of one shape have different strides, and the first is one of rows or channels last."""
    for shape in ((3, 5), SHAPE):
        operands = placed([numbers(*shape), numbers(*shape), numbers(*shape)], MIXED, "cpu")
        assert len({t.stride() for t in operands}) == 3
        assert [np.array_equal(to_host(t), numbers(*shape)) for t in operands] == [True] * 3
    assert (layout_of(numbers(3, 5), MIXED), layout_of(numbers(*SHAPE), MIXED)) == (ROWS, CHANNELS_LAST)


def test_samples_fit_by_their_dims_and_core() -> None:
    """Layouts need dims, and values are repeated in dims that the operator does not contract, of one operand."""
    sub = OPERATORS["sub"]
    vectors = sample(numbers(5), numbers(5))
    assert fitted(sub, vectors, ROWS) is None
    assert fitted(sub, vectors, MIXED) is vectors
    assert fitted(sub, sample(numbers(5), 1.0), MIXED) is None
    assert fitted(sub, sample(numbers(2, 3), numbers(2, 3)), BROADCAST_MIDDLE) is None
    constant = fitted(sub, sample(numbers(*SHAPE), numbers(*SHAPE)), BROADCAST_ALL)
    assert constant is not None
    assert [len(np.unique(a)) for a in constant.args] == [1, 24]
    assert fitted(OPERATORS["matmul"], sample(numbers(*SHAPE), numbers(4, 2), core=2), BROADCAST_ALL) is None
    assert fitted(sub, sample(numbers(3, 5), numbers(3, 5), layouts=(ROWS,)), MIXED) is None


def test_cotangents_have_layouts() -> None:
    """Cotangents are expanded for sliced inputs, with equal values that can be moved, and strided for others."""
    context = Context("cpu")
    outputs = [to_layout(numbers(3, 5), CONTIGUOUS, "cpu")]
    (made,) = cotangents(outputs, "op", context.instance, cotangents_with("offset"))
    assert made.stride() == (0, 0)
    (plain,) = cotangents(outputs, "op", context.instance, Cotangents(equal=True))
    assert np.array_equal(to_host(plain), to_host(made))
    (moved,) = cotangents(outputs, "op", context.instance, Cotangents(equal=True, step=0.5))
    assert len(np.unique(to_host(moved))) == 2
    (strided,) = cotangents(outputs, "op", context.instance, cotangents_with("transposed"))
    assert strided.stride() == (8, 1)


def test_lower_levels_have_one_of_the_further_layouts() -> None:
    """Up to level 2, values and in-place forms of the first dtype have mixed operands, and values a repeated one
    too; level 3 has all layouts."""
    cases = plan(Context("cpu"), operators=["sub"])
    further = {(c.property, c.layout) for c in cases if c.level < 3 and c.layout in MEMORY[len(BASIC) :]}
    assert further == {("value", MIXED), ("value", BROADCAST_MIDDLE), ("value", BROADCAST_ALL), ("inplace", MIXED)}
    assert {c.layout for c in cases if c.property == "value"} >= set(MEMORY)
    assert not {c.layout for c in cases if c.property == "inplace"} & {*REPEATING, ALIASED}


# -- what the cases say -----------------------------------------------------------------------------------------------
MESSAGES = {
    ("sub-uses-one-operands-strides-for-all", "sub/value/float32/mixed"): r"elements wrong; .* \[mixed\]$",
    ("sub-writes-rows-without-their-gaps", "sub/inplace/float32/mixed"): r"elements wrong; .* \[mixed\]$",
    ("neg-clears-the-gaps-between-rows", "neg/inplace/float32/mixed"): "in place: memory other than the target was",
    ("copied-reads-elements-that-are-written", "copied/inplace-overlap/float32/contiguous"): (
        "in place, where 'src' is the elements before the target's: .* elements wrong"
    ),
    ("relu-reads-one-element-of-the-cotangent", "relu/gradient/float32/offset"): (
        "^with broadcast-all cotangents, gradient 0: .* elements wrong"
    ),
    ("tanh-reads-cotangents-without-gaps", "tanh/gradient/float32/transposed"): "^with rows cotangents, gradient 0: ",
}


@pytest.mark.parametrize(("mutant", "case"), MESSAGES, ids=[case for _, case in MESSAGES])
def test_a_failure_names_the_layout(mutant: str, case: str) -> None:
    """The text of a failure names the layout of the operands, the overlap, or the layout of the cotangents."""
    assert_fails(mutant, case, MESSAGES[mutant, case])


def assert_fails(mutant: str, case: str, message: str) -> None:
    """Check that a case fails on a mutant with a message."""
    registry.load()
    with installed(load()[mutant].make()) as context:
        (found,) = [c for c in plan(context, operators=[case.split("/")[0]]) if c.id == case]
        result = run_case(context, found, explained=False)
    assert result.verdict == "failed"
    assert re.search(message, result.message.splitlines()[0]), result.message


@pytest.mark.parametrize("writes", [False, True])
def test_an_overlap_may_be_refused(writes: bool) -> None:
    """A RuntimeError about the memory is right for an operand that overlaps the target, unless it was written to."""
    made = Mirror("refusing")
    right = made.table["copied_"]

    def refuse(x: Any, y: Any) -> Any:
        if getattr(y, "memory", None) is x.memory:
            if writes:
                right(x, y)
            raise RuntimeError("the operands share memory")
        return right(x, y)

    made.table["copied_"] = refuse
    with installed(made) as context:
        (case,) = plan(context, patterns=["copied/inplace-overlap/float32/*"])
        result = run_case(context, case, explained=False)
    assert result.verdict == ("failed" if writes else "passed"), result.message
    assert not writes or "RuntimeError: the operands share memory" in result.message


def test_a_write_outside_an_overlapping_target_fails() -> None:
    """A kernel that also writes the operand, where it overlaps the target, fails with the name of the operand."""
    made = Mirror("spilling")
    right = made.table["copied_"]

    def spill(x: Any, y: Any) -> Any:
        out = right(x, y)
        if getattr(y, "memory", None) is x.memory and made.layout(y)[1] < made.layout(x)[1]:
            made.copy_(made.restride(y, (1,), (1,), 0), made.restride(x, (1,), (1,), made.layout(x)[1] + 1))
        return out

    made.table["copied_"] = spill
    with installed(made) as context:
        (case,) = plan(context, patterns=["copied/inplace-overlap/float32/*"])
        result = run_case(context, case, explained=False)
    assert "where 'src' is the elements before the target's: other memory was written to" in result.message
