"""Samples and references of the subject packages' operators, compared with each other on the reference device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._plugins.registry import reference_device
from candelabra.dtypes import ALL, dtype
from candelabra.library import DEVICE, OPERAND, OPERATORS, TENSOR, Operator
from candelabra_conformance.references import registry as references
from candelabra_conformance.samples import registry
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.sample import HERE, Sample, mapped
from candelabra_conformance.taking import refused

from tests.conformance.covering import kind
from tests.sampling import sampled

registry.load()
references.load()
PACKAGES = tuple(
    f"candelabra._operators.{name}"
    for name in ("families", "linalg", "fft", "signal", "special", "grid_sampling", "value_checks")
)
REFERENCE = str(reference_device())


def is_plain(op: Operator[..., Any]) -> bool:
    """Return whether samples follow from the record: a pointwise operator with tensor parameters only."""
    return getattr(op.rule, "pointwise", False) and all(p.kind in (TENSOR, OPERAND) for p in op.schema.parameters)


NAMES = sorted(n for n, op in OPERATORS.items() if op.declared.__module__.startswith(PACKAGES) and not is_plain(op))


def supports(name: str, d: dtype) -> bool:
    """Return whether an operator supports a dtype."""
    return refused(OPERATORS[name], d) is None and registry.defined(name, d)


def generator_argument(name: str, d: dtype | str) -> Maker:
    """Return the argument of a sample generator."""
    return Maker(name, d, *registry.DOMAINS.get(name, ()))


def tensor(x: np.ndarray[Any, Any]) -> Any:
    """Return a tensor on the reference device."""
    return cd.tensor(x.astype(np.float32)).to(cd.bfloat16) if x.dtype.name == "bfloat16" else cd.tensor(x)


def on_reference(value: Any) -> Any:
    """Replace arrays by tensors, and a device parameter by the reference device."""
    if isinstance(value, dict):
        return {name: on_reference(part) for name, part in value.items()}
    return REFERENCE if value is HERE else mapped(value, tensor)


def called(name: str, s: Sample) -> Any:
    """Return the result on the reference device."""
    return OPERATORS[name].function(*map(on_reference, s.args), **on_reference(dict(s.kwargs)))


def outputs(value: Any) -> tuple[Any, ...]:
    """Return the outputs as a list."""
    return tuple(value) if isinstance(value, tuple) else (value,)


def by_position(name: str, s: Sample) -> list[Any]:
    """Return the arguments by position, as the record declares them."""
    given, rest = iter(s.args), dict(s.kwargs)
    missing = object()
    out = []
    for p in OPERATORS[name].schema.parameters:
        value = missing if p.keyword_only else next(given, missing)
        out.append(rest.pop(p.name, p.default) if value is missing else value)
    assert next(given, missing) is missing
    assert not rest
    return out


def ordinary(name: str, d: dtype | str) -> Iterator[Sample]:
    """Return all ordinary samples."""
    for generator in registry.INPUTS[name]:
        yield from generator(generator_argument(name, d))


@pytest.mark.parametrize("name", sampled(3, NAMES, kind))
def test_every_operator_has_samples_for_each_dtype_that_it_takes(name: str) -> None:
    """No generator is empty, every call works in supported dtypes, and none works in the others."""
    for d in ALL:
        for generator in registry.INPUTS[name]:
            samples = list(generator(generator_argument(name, d)))
            assert samples or not supports(name, d)
            if not supports(name, d):
                for s in samples[:1]:
                    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
                        called(name, s)
                continue
            for s in samples:
                assert all(isinstance(part, cd.Tensor) for part in outputs(called(name, s)))


@pytest.mark.parametrize("name", sorted(n for n in registry.MISTAKES if n in NAMES))
def test_every_mistake_is_refused_in_words(name: str) -> None:
    """In each of three dtypes an invalid call raises one of the expected classes with a message."""
    for d in ("float32", "float64", "int64"):
        for generator in registry.MISTAKES[name]:
            samples = list(generator(generator_argument(name, d)))
            assert samples
            for s in samples:
                with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as raised:
                    called(name, s)
                assert " " in str(raised.value), s.note


SINGLE = {
    (name, "pivot"): "no device has to factorize without pivoting; the reference refuses"
    for name in ("linalg_lu_factor_ex", "linalg_lu_factor_checked", "linalg_lu_factor", "linalg_lu")
} | {(name, "driver"): "no device offers drivers" for name in ("linalg_svd_driver", "linalg_svdvals_driver")}
"""Parameters with only one value to try."""


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_takes_two_values(name: str) -> None:
    """The samples in three dtypes have two values of each parameter, compared by repr; arrays by shape and elements."""
    seen: dict[str, set[str]] = {p.name: set() for p in OPERATORS[name].schema.parameters if p.kind != DEVICE}
    for d in ("float64", "complex128", "int64"):
        for s in ordinary(name, d):
            for p, value in zip(OPERATORS[name].schema.parameters, by_position(name, s), strict=True):
                if p.kind != DEVICE:
                    seen[p.name].add(repr(mapped(value, lambda x: (x.shape, x.tobytes()))))
    few = {p for p, values in seen.items() if len(values) < 2}
    assert few == {p for op, p in SINGLE if op == name}
