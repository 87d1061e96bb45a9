"""The bodies of composite operators conform on a device that has no kernel over them.

The devices of this repository override the operators that are worth it, so that their runs of the suite never reach the
bodies; a vendor's first device runs nothing else. ``make test`` tries special values and refusals, which broke most
bodies; ``make test-all`` tries all properties.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from candelabra.library import OPERATORS, plugins
from candelabra_conformance.context import Context
from candelabra_conformance.model import PASSED, SKIPPED, Case
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case

SAMPLED = (("special", "float16"), ("special", "float32"), ("errors", "float32"), ("errors", "int64"))
"""The properties and dtypes that ``make test`` tries."""


def overridden() -> list[str]:
    """Return the operators that have a body and that the reference device overrides."""
    _, kernels = plugins.backend(plugins.reference_device().type)
    return sorted(name for name in kernels if name in OPERATORS and OPERATORS[name].body is not None)


@pytest.fixture(scope="module")
def bare() -> Iterator[Context]:
    """Return a context that tests a device with kernels of primitives only."""
    with installed(Mirror("bare", overrides=False)) as context:
        yield context


def wrong(context: Context, cases: list[Case]) -> str:
    """Return a paragraph for each case that fails, or an empty text."""
    bad = [r for case in cases if (r := run_case(context, case)).verdict not in (PASSED, SKIPPED)]
    return "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in bad[:5])


def test_the_device_has_no_kernel_over_a_body(bare: Context) -> None:
    """The device has the reference's kernels of primitives, and none of an operator with a body."""
    names = overridden()
    assert len(names) > 50
    assert not set(names) & set(bare.instance.kernels)
    assert {"add", "matmul", "sum"} <= set(bare.instance.kernels)


@pytest.mark.parametrize("operator", overridden())
def test_bodies_keep_special_values_and_words(bare: Context, operator: str) -> None:
    """A body has the reference's special values and refusals."""
    patterns = [f"{operator}/{property}/{dtype}/*" for property, dtype in SAMPLED]
    assert not wrong(bare, plan(bare, operators=[operator], patterns=patterns))


@pytest.mark.thorough
@pytest.mark.parametrize("operator", overridden())
def test_bodies_conform_in_all_pairs(bare: Context, operator: str) -> None:
    """A body passes every property, in every pair of property, dtype and layout."""
    cases = pairwise(plan(bare, operators=[operator]))
    assert cases
    assert not wrong(bare, cases)
