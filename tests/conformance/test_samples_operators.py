"""Samples and references of the operators distribution, each held against the other on the reference device."""

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

registry.load()
references.load()
PACKAGES = tuple(
    f"candelabra._operators.{name}"
    for name in ("families", "linalg", "fft", "signal", "special", "grid_sampling", "value_checks")
)
REFERENCE = str(reference_device())


def is_plain(op: Operator[..., Any]) -> bool:
    """Whether samples follow from the record: pointwise, and of tensors alone."""
    return getattr(op.rule, "pointwise", False) and all(p.kind in (TENSOR, OPERAND) for p in op.schema.parameters)


NAMES = sorted(n for n, op in OPERATORS.items() if op.declared.__module__.startswith(PACKAGES) and not is_plain(op))


def taken(name: str, d: dtype) -> bool:
    """Whether an operator takes a dtype."""
    return refused(OPERATORS[name], d) is None and registry.defined(name, d)


def maker(name: str, d: dtype | str) -> Maker:
    """What a generator is given."""
    return Maker(name, d, *registry.DOMAINS.get(name, ()))


def tensor(x: np.ndarray[Any, Any]) -> Any:
    """A tensor on the reference device."""
    return cd.tensor(x.astype(np.float32)).to(cd.bfloat16) if x.dtype.name == "bfloat16" else cd.tensor(x)


def here(value: Any) -> Any:
    """The arguments with tensors for arrays, and the device where it is asked for."""
    if isinstance(value, dict):
        return {name: here(part) for name, part in value.items()}
    return REFERENCE if value is HERE else mapped(value, tensor)


def called(name: str, s: Sample) -> Any:
    """The result on the reference device."""
    return OPERATORS[name].function(*map(here, s.args), **here(dict(s.kwargs)))


def parts(value: Any) -> tuple[Any, ...]:
    """The outputs, one or several."""
    return tuple(value) if isinstance(value, tuple) else (value,)


def bound(name: str, s: Sample) -> list[Any]:
    """The arguments by position, as the record declares them."""
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
    """Every ordinary call."""
    for generator in registry.INPUTS[name]:
        yield from generator(maker(name, d))


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_has_samples_for_each_dtype_that_it_takes(name: str) -> None:
    """No generator is empty, every call works, and none does in the dtypes that are not taken."""
    for d in ALL:
        for generator in registry.INPUTS[name]:
            samples = list(generator(maker(name, d)))
            assert samples
            if not taken(name, d):
                with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
                    called(name, samples[0])
                continue
            for s in samples:
                assert all(isinstance(part, cd.Tensor) for part in parts(called(name, s)))


@pytest.mark.parametrize("name", sorted(n for n in registry.MISTAKES if n in NAMES))
def test_every_mistake_is_refused_in_words(name: str) -> None:
    """In each of three dtypes a call raises one of the classes that users may expect, with a text."""
    for d in ("float32", "float64", "int64"):
        for generator in registry.MISTAKES[name]:
            samples = list(generator(maker(name, d)))
            assert samples
            for s in samples:
                with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as raised:
                    called(name, s)
                assert " " in str(raised.value), s.note


SINGLE = {
    (name, "pivot"): "no device has to factorize without pivoting; the reference refuses"
    for name in ("linalg_lu_factor_ex", "linalg_lu_factor_checked", "linalg_lu_factor", "linalg_lu")
} | {(name, "driver"): "no device offers drivers" for name in ("linalg_svd_driver", "linalg_svdvals_driver")}
"""Parameters of which there is one value to try."""


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_takes_two_values(name: str) -> None:
    """Over the samples in three dtypes, told apart by what they print as; arrays by their shapes and elements."""
    seen: dict[str, set[str]] = {p.name: set() for p in OPERATORS[name].schema.parameters if p.kind != DEVICE}
    for d in ("float64", "complex128", "int64"):
        for s in ordinary(name, d):
            for p, value in zip(OPERATORS[name].schema.parameters, bound(name, s), strict=True):
                if p.kind != DEVICE:
                    seen[p.name].add(repr(mapped(value, lambda x: (x.shape, x.tobytes()))))
    few = {p for p, values in seen.items() if len(values) < 2}
    assert few == {p for op, p in SINGLE if op == name}
