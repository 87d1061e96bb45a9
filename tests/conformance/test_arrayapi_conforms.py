"""The kernels for Array API namespaces conform over a namespace without float64 and without complex numbers.

Array libraries of accelerators often lack both. ``make test`` tries the kernels that choose a dtype; ``make test-all``
tries all operators.
"""

from __future__ import annotations

from collections.abc import Iterator

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra.dtypes import ALL
from candelabra.library import OPERATORS
from candelabra_arrayapi import linalg, reductions, shaping, sorting
from candelabra_conformance.context import Context
from candelabra_conformance.fake import FakeAccelerator
from candelabra_conformance.model import PASSED, SKIPPED, UNSUPPORTED, Case
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case

from tests.conformance.covering import each_once
from tests.lantern import silent

MISSING = tuple(d.name for d in ALL if d.is_complex or d.name in ("float64", "bfloat16"))
DTYPES = {d: np.dtype(d.name) for d in ALL if d.name not in MISSING}
KERNELS = {n: silent(k) for n, k in candelabra_arrayapi.kernels(np, DTYPES).items() if n in OPERATORS}
CHOOSING = sorted(
    {
        *shaping.kernels(np, DTYPES, lambda index: None),
        *reductions.kernels(np, DTYPES),
        *sorting.kernels(np, DTYPES),
        *linalg.kernels(np, DTYPES),
    }
    & set(KERNELS) - {"linalg_eig", "linalg_eigvals"}
)
"""The operators whose kernels choose a dtype of the namespace, except two with complex results."""


RAISING = "linalg_cond"
"""The operator whose samples contain a batch with a singular matrix, for which NumPy's ``inv`` raises."""


@pytest.fixture(scope="module")
def narrow() -> Iterator[Context]:
    """Return a context that tests a device of that namespace."""
    device = FakeAccelerator("narrow", 1, missing_dtypes=MISSING, dlpack=None, kernels=KERNELS)
    with installed(device) as context:
        yield context


def wrong(context: Context, cases: list[Case], accepted: tuple[str, ...] = (PASSED, SKIPPED)) -> str:
    """Return a paragraph for each case that fails, or an empty text."""
    bad = [r for case in cases if (r := run_case(context, case)).verdict not in accepted]
    return "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in bad[:5])


@pytest.mark.parametrize("operator", CHOOSING)
def test_kernels_that_choose_a_dtype_do_without_wide_ones(narrow: Context, operator: str) -> None:
    """Results in float32 and int64 are correct without float64 and complex128."""
    cases = each_once(plan(narrow, patterns=[f"{operator}/value/{dtype}/*" for dtype in ("float32", "int64")]))
    assert cases
    assert not wrong(narrow, cases)


@pytest.mark.thorough
@pytest.mark.parametrize("operator", sorted(set(OPERATORS) - {RAISING}))
def test_every_operator_does_without_wide_dtypes(narrow: Context, operator: str) -> None:
    """Every operator passes up to training, or says that the device lacks a dtype that its result needs."""
    cases = pairwise(plan(narrow, level=2, operators=[operator]))
    assert not wrong(narrow, cases, (PASSED, SKIPPED, UNSUPPORTED))
