"""Other compilers get the cases that they have a text for."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.compilers import COMPILERS, Compiler
from benchmarks.compilers_jax import JAX
from benchmarks.compilers_tinygrad import TINYGRAD
from benchmarks.fused import FUSED
from benchmarks.worker import best_time

CASES = {case.name: case for case in FUSED}


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: compiler.library)
def test_a_compiler_without_texts_gets_the_cases_as_they_are(compiler: Compiler) -> None:
    """One with texts gets a case with its setup and statement, or none."""
    given = {name: compiler.case(case) for name, case in CASES.items()}
    if compiler.texts is None:
        assert given == CASES
    else:
        assert {name for name, case in given.items() if case is not None} == set(compiler.texts)


def test_texts_are_of_cases_that_exist() -> None:
    """A case that is renamed takes its texts along."""
    assert set(JAX) | set(TINYGRAD) <= set(CASES)


@pytest.mark.parametrize(
    "name", ["mul, add, sum, backward on 8 elements", "compiled MLP step, batch 32, 784-128-10, SGD"]
)
def test_the_texts_for_jax_run(name: str) -> None:
    """They are programs of their own, which nothing else would check."""
    assert best_time(importlib.import_module("jax"), *JAX[name], seconds=0) > 0
