"""Pointwise operators: samples, special values and invalid calls derived from records, on the reference device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from candelabra._namespace.index import OPERATORS_IN
from candelabra._plugins.registry import reference_device
from candelabra.dtypes import ALL, BY_NAME, bfloat16, dtype
from candelabra.library import OPERAND, OPERATORS, TENSOR, Operator, open_device
from candelabra_conformance import references
from candelabra_conformance.calling import called
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.registry import REFERENCES
from candelabra_conformance.samples import registry
from candelabra_conformance.samples.gather import gathered, maker
from candelabra_conformance.samples.mistakes_of_record import mistakes_of_record, refuses
from candelabra_conformance.samples.pointwise import (
    CONSTANT,
    RANGES,
    follows_from_record,
    samples_of_record,
)
from candelabra_conformance.samples.sample import KINDS, arrays, mapped
from candelabra_conformance.samples.special_values import COMPONENTWISE, NO_ANSWER, special_of_record
from candelabra_conformance.tolerance import eps
from candelabra_conformance.transport import to_device

from tests.conformance.covering import kind
from tests.sampling import sampled

references.load()
registry.load()
EVERY = sorted(set(OPERATORS) | set(OPERATORS_IN))
POINTWISE = [
    name for name in EVERY
    if follows_from_record(OPERATORS[name]) and {p.kind for p in OPERATORS[name].schema.parameters} <= {TENSOR, OPERAND}
]  # fmt: skip
DEVICE = open_device(reference_device())


def supported_dtypes(op: Operator[..., Any]) -> list[dtype]:
    """Return the dtypes that a record supports."""
    return [d for d in ALL if not refuses(op, d)]


# -- samples ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sampled(3, POINTWISE, kind))
def test_every_kind_of_sample_follows_from_a_record(name: str) -> None:
    """Each kind has samples in each supported dtype, and the arrays have that dtype."""
    op = OPERATORS[name]
    assert supported_dtypes(op)
    for d in supported_dtypes(op):
        samples = list(samples_of_record(op, maker(op, d)))
        assert {s.kind for s in samples} == set(KINDS)
        assert {a.dtype for s in samples for a in arrays(s.args)} == {host_dtype(d)}
        assert {a.ndim for s in samples for a in arrays(s.args)} == {0, 1, 2, 3, 4}
        operands = [p for p in op.schema.parameters if p.kind == OPERAND and len(op.schema.parameters) > 1]
        assert {s.note.split("=")[0] for s in samples} == {"", *(p.name for p in operands)}


def test_special_values_hold_what_they_are_called() -> None:
    """Floats have subnormals, extremes, NaN and both zeros; integers have both ends; two operands have every pair."""
    for d in (BY_NAME["float16"], bfloat16, BY_NAME["float64"]):
        found, *_ = special_of_record(OPERATORS["add"], maker(OPERATORS["add"], d))
        x, y = (a.astype(np.float64) for a in found.args)
        for value in (0.0, np.inf, -np.inf, float(np.float64(1) + eps(d))):
            assert np.any((x == value) & (y == 2.0))
        assert np.signbit(x[x == 0]).any()
        assert np.isnan(x).any()
        assert np.any((x > 0) & (x < eps(d) ** 2)) or d.name == "float16"
    (found,) = special_of_record(OPERATORS["neg"], maker(OPERATORS["neg"], BY_NAME["int8"]))
    assert set(found.args[0].tolist()) == {0, 1, -1, 2, 7, -128, -127, 126, 127, 0b01010101, 0b10101010 - 256}
    assert list(special_of_record(OPERATORS["sum"], maker(OPERATORS["sum"], BY_NAME["int8"]))) == []
    assert list(samples_of_record(OPERATORS["sum"], maker(OPERATORS["sum"], BY_NAME["int8"]))) == []


@pytest.mark.parametrize("name", sorted({*RANGES, *CONSTANT, *NO_ANSWER, *COMPONENTWISE}))
def test_tables_name_operators_that_there_are(name: str) -> None:
    """The operators exist and have the parameters that the tables name."""
    op = OPERATORS[name]
    assert follows_from_record(op)
    named = {p.name for p in op.schema.parameters}
    assert {*RANGES.get(name, ()), *CONSTANT.get(name, ())} <= named
    kinds, undefined, why = NO_ANSWER.get(name, ("f", None, "defined"))
    assert kinds
    assert set(kinds) <= set("biufc")
    assert why
    assert undefined is None or callable(undefined)


# -- references -------------------------------------------------------------------------------------------------------
def test_every_pointwise_operator_has_a_reference() -> None:
    """Every pointwise operator has exactly one reference."""
    assert [name for name in POINTWISE if name not in REFERENCES] == []
    with pytest.raises(ValueError, match=r"reference\('exp'\): exp has a reference already"):
        references.reference("exp")(lambda x: x)
    assert references.reference("exp")(REFERENCES["exp"]) is REFERENCES["exp"]


# -- invalid calls ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EVERY)
def test_mistakes_that_follow_from_a_record_raise(name: str) -> None:
    """The reference device raises for any operator before it computes anything."""
    op = OPERATORS[name]
    preferred = [BY_NAME[n] for n in ("float32", "int64", "complex64", "bool")]
    d = next(d for d in preferred if not refuses(op, d))
    made = list(mistakes_of_record(op, maker(op, d)))
    if any(True for _ in gathered(op, d, "inputs")):
        assert made
    for found in made:
        args, kwargs = mapped((found.args, dict(found.kwargs)), lambda a: to_device(a, DEVICE))
        with pytest.raises((TypeError, RuntimeError, IndexError, ValueError), match=r"\w"):
            called(op, args, kwargs, DEVICE)


@pytest.mark.parametrize("name", [name for name in POINTWISE if name in registry.MISTAKES])
def test_mistakes_of_pointwise_operators_raise(name: str) -> None:
    """Invalid calls raise in every supported dtype."""
    op = OPERATORS[name]
    seen = 0
    for d in supported_dtypes(op):
        for generator in registry.MISTAKES[name]:
            for found in generator(maker(op, d)):
                seen += 1
                args, kwargs = mapped((found.args, dict(found.kwargs)), lambda a: to_device(a, DEVICE))
                with pytest.raises((TypeError, RuntimeError), match=r"division|power|dtype|Expected|must"):
                    called(op, args, kwargs, DEVICE)
    assert seen
