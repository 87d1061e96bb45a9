"""Other compilers get the cases that they have a text for."""

from __future__ import annotations

import sys

import pytest

from benchmarks.compilers import COMPILERS, Compiler
from benchmarks.compilers_jax import JAX
from benchmarks.compilers_tinygrad import TINYGRAD
from benchmarks.fused import FUSED

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


def test_the_texts_for_jax_run() -> None:
    """They are programs of their own, which nothing else would check. JAX has threads, and a process of its own."""
    [compiler] = [each for each in COMPILERS if each.library == "jax"]
    side = compiler.side(sys.executable)
    try:
        for name in list(JAX)[:2]:
            case = compiler.case(CASES[name])
            assert case is not None
            assert side.time(case, 0.0) > 0
    finally:
        side.close()
