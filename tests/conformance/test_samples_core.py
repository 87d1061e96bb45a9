"""Samples and references of the core's and the networks' operators that are not pointwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from candelabra import Tensor
from candelabra._namespace.index import OPERATORS_IN
from candelabra._plugins.registry import reference_device
from candelabra.dtypes import ALL, BY_NAME, dtype
from candelabra.library import DEVICE, OPERAND, OPERATORS, REQUIRED, TENSOR, open_device
from candelabra_conformance import references
from candelabra_conformance.calling import called, tensors
from candelabra_conformance.references.random import circle, negative_logarithm, words
from candelabra_conformance.samples import registry
from candelabra_conformance.samples.gather import maker
from candelabra_conformance.samples.mistakes_of_record import refuses
from candelabra_conformance.samples.sample import KINDS, Sample, mapped
from candelabra_conformance.transport import to_device

from tests.conformance.covering import kind
from tests.sampling import sampled

references.load()
registry.load()
INSTANCE = open_device(reference_device())
SUBJECTS = "shapes indexing primitives reductions sorting statistics masked calculus cumulative normalization"
PARTS = (*(f"candelabra._operators.{subject}" for subject in SUBJECTS.split()), "candelabra.nn")


def belongs_to_core(name: str) -> bool:
    """Return whether the operator belongs to the core or the networks, and is not pointwise."""
    record = OPERATORS[name]
    plain = {p.kind for p in record.schema.parameters} <= {TENSOR, OPERAND}
    return record.declared.__module__.startswith(PARTS) and not (plain and getattr(record.rule, "pointwise", False))


NAMES = sorted(name for name in {*OPERATORS, *OPERATORS_IN} if belongs_to_core(name))


def supports(name: str, d: dtype) -> bool:
    """Return whether the operator supports the dtype, by its record and by the samples."""
    return not refuses(OPERATORS[name], d) and registry.defined(name, d)


def samples(name: str, d: dtype, table: dict[str, list[registry.Generator]]) -> Iterator[Sample]:
    """Return the samples that this package's families yield for an operator."""
    for generator in table.get(name, ()):
        yield from generator(maker(OPERATORS[name], d))


def result(name: str, s: Sample) -> Any:
    """Return the reference device's result of a sample."""
    args, kwargs = mapped((s.args, dict(s.kwargs)), lambda array: to_device(array, INSTANCE))
    return called(OPERATORS[name], args, kwargs, INSTANCE)


@pytest.mark.parametrize("name", sampled(3, NAMES, kind))
def test_every_operator_has_samples_in_each_dtype_that_it_takes(name: str) -> None:
    """Each dtype has ordinary samples, and each sample runs on the reference device."""
    for d in ALL:
        if not supports(name, d):
            continue
        found = list(samples(name, d, registry.INPUTS))
        assert {s.kind for s in found} <= set(KINDS)
        assert len({s.kind for s in found}) >= 3
        for s in (*found, *samples(name, d, registry.SPECIAL)):
            assert all(isinstance(t, Tensor) for t in tensors(result(name, s)))


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(registry.MISTAKES)))
def test_every_mistake_is_refused_with_a_reason(name: str) -> None:
    """The reference device raises one of the expected classes in every supported dtype."""
    for d in ALL:
        if supports(name, d):
            found = list(samples(name, d, registry.MISTAKES))
            assert found
            for s in found:
                with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as refusal:
                    result(name, s)
                assert " " in str(refusal.value), s.note
                assert "operands could not be broadcast" not in str(refusal.value), s.note


def by_parameter(name: str, s: Sample) -> dict[str, Any]:
    """Return the arguments by name, including defaults."""
    found = dict(s.kwargs)
    for p, value in zip(OPERATORS[name].schema.parameters, s.args, strict=False):
        found[p.name] = value
    for p in OPERATORS[name].schema.parameters:
        if p.name not in found:
            assert p.default is not REQUIRED
            found[p.name] = p.default
    return found


SINGLE = {("hash_tensor", "mode"), ("segment_reduce", "indices")}
"""Parameters for which PyTorch supports one value only."""
DEPRECATED = {"size_average", "reduce"}
"""Parameters of losses that are deprecated: values other than None warn."""


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_takes_two_values(name: str) -> None:
    """The samples of one dtype have two values of each parameter; arrays differ in shape. (There is one device.)"""
    seen: dict[str, set[str]] = {p.name: set() for p in OPERATORS[name].schema.parameters}
    d = next(d for d in (BY_NAME["float64"], BY_NAME["complex128"], BY_NAME["int64"]) if supports(name, d))
    for s in samples(name, d, registry.INPUTS):
        for parameter, value in by_parameter(name, s).items():
            seen[parameter].add(repr(mapped(value, lambda array: array.shape)))
    places = {p.name for p in OPERATORS[name].schema.parameters if p.kind == DEVICE or p.name == "target"}
    given = {"dtype"} if OPERATORS[name].schema.tensors == () else set()
    single = {parameter for operator, parameter in SINGLE if operator == name}
    assert {parameter for parameter, values in seen.items() if len(values) < 2} <= places | given | single | DEPRECATED


def test_normal_numbers_are_the_transform_of_their_words() -> None:
    """The steps of the specification stay within 3 units of the last place of the logarithm and the circular
    functions computed in 80 bits (section 7 says 0.8 and 1.5)."""
    first, second = words(3, 5, 8000).reshape(-1, 2).T
    A = second & ~np.uint64(2047)
    N, (cosine, sine) = negative_logarithm(first >> np.uint64(12), 52), circle(A)
    u = ((first >> np.uint64(12)).astype(np.longdouble) + 0.5) / np.longdouble(2) ** 52
    turns = A.astype(np.longdouble) / np.longdouble(2) ** 64 * 8 * np.arctan(np.longdouble(1))
    for found, exact in ((N, -np.log(u)), (cosine, np.cos(turns)), (sine, np.sin(turns))):
        # An angle near a multiple of a quarter turn is itself rounded in 80 bits: to 2**-63 turns.
        error = np.maximum(np.abs(found - exact) - 8 * np.longdouble(2) ** -62, 0)
        assert float(np.max(error / np.spacing(np.abs(exact).astype(np.float64)))) <= 3
