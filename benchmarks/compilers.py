"""Other compilers on the work of :mod:`benchmarks.fused`: ``torch.compile``, ``jax.jit`` and tinygrad's JIT.

``torch.compile`` gets the text of a case. JAX and tinygrad have texts of their own, with the same arithmetic on arrays
of the same sizes. A case for which one has no text is not measured there, and neither is one that fails: tinygrad, for
example, needs ``clang``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.cases import Case
from benchmarks.compilers_jax import JAX
from benchmarks.compilers_tinygrad import TINYGRAD
from benchmarks.fused import COMPILING
from benchmarks.sides import Side


class Compiler(NamedTuple):
    """A peer that compiles."""

    name: str
    library: str
    prelude: str = ""
    texts: Mapping[str, tuple[str, str]] | None = None
    """Setup and statement by the name of the case; None: the case's own."""
    environment: Mapping[str, str] = {}

    def case(self, case: Case) -> Case | None:
        """Return the case for this compiler, None if it has no text."""
        if self.texts is None:
            return case
        if case.name not in self.texts:
            return None
        setup, statement = self.texts[case.name]
        return case._replace(setup=setup, statement=statement)

    def side(self, python: str) -> Side:
        """Return a process of its own."""
        return Side(python, self.library, os.environ | self.environment, prelude=self.prelude)


COMPILERS = (
    Compiler("torch.compile", "torch", COMPILING),
    Compiler("jax.jit", "jax", texts=JAX),
    Compiler("tinygrad", "tinygrad", texts=TINYGRAD, environment={"DEV": "CPU", "TRAINING": "1"}),
)


def pythons(peer: str, tinygrad: str) -> dict[str, str]:
    """Return the interpreters that exist, by the compiler's name: JAX is in the environment of the tests."""
    places = {"torch.compile": peer, "jax.jit": sys.executable, "tinygrad": tinygrad}
    return {name: python for name, python in places.items() if Path(python).exists()}


def measure(case: Case, interpreters: Mapping[str, str], rounds: int) -> dict[str, float]:
    """Return the best time of each compiler that runs the case, by its name. The first call, which compiles, does not
    count.
    """
    times: dict[str, float] = {}
    for compiler in COMPILERS:
        own = compiler.case(case)
        if own is None or compiler.name not in interpreters:
            continue
        side = compiler.side(interpreters[compiler.name])
        try:
            side.time(own, 0.0)
            times[compiler.name] = min(side.time(own, 0.25) for _ in range(rounds))
        except RuntimeError as error:
            print(error, file=sys.stderr)
        finally:
            side.close()
    return times
