"""The fake accelerator conforms up to training with each of its options, and faults found by it stay fixed.

``candelabra conformance --device fake`` (``fake?immutable``, ``fake?-float64,-complex128``) runs all cases of all
levels. Here one test is one operator, in the dtypes with the most dependents, and with the cases that the device's
option affects. ``make test`` tries a sixteenth of the operators on one of the devices; ``make test-all`` tries each on
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.fake import installed
from candelabra_conformance.model import DEVICE, PASSED, SKIPPED, Case, Result
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case

from tests.conformance.covering import each_once, kind, one_operator_in
from tests.sampling import partition

WRITES = frozenset({"aliasing", "inplace", "inplace-gradient", "out"})
DERIVATIVES = frozenset({"gradient", "gradient2"})
NARROW: dict[str, Any] = {"missing_dtypes": ("float64", "complex128")}
HABITS: dict[str, dict[str, Any]] = {"late": {}, "immutable": {"immutable": True}, "narrow": NARROW}
"""Devices by their names in this file, with the options that differ from the defaults."""


def is_affected(device: Context, case: Case) -> bool:
    """Return whether an option affects a case: late results do, immutable arrays in writes, missing dtypes in
    derivatives."""
    if device.device.type == "fake_late":
        return case.dtype in ("", "float32") or (case.dtype == "int64" and case.property == "value")
    return case.dtype == "float32" and case.property in (
        WRITES if device.device.type == "fake_immutable" else DERIVATIVES
    )


@pytest.fixture(scope="module", params=HABITS)
def device(request: pytest.FixtureRequest) -> Iterator[Context]:
    """Return a context that tests one fake device."""
    with installed(f"fake_{request.param}", **HABITS[request.param]) as made:
        yield Context(f"{made.name}:0")


def wrong(context: Context, cases: list[Case]) -> str:
    """Return a paragraph for each case that fails, or an empty text."""
    results: list[Result] = [run_case(context, case) for case in cases]
    bad = [r for r in results if r.verdict not in (PASSED, SKIPPED)]
    return "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in bad[:5])


CHOSEN = one_operator_in(16)
PART = partition(len(HABITS), CHOSEN, kind)
DEALT = [(habit, name) for i, habit in enumerate(HABITS) for name in sorted(CHOSEN) if PART[name] == i]
ALL = [(habit, name) for habit in HABITS for name in sorted(OPERATORS)]


@pytest.mark.parametrize(("device", "operator"), DEALT, indirect=["device"])
def test_the_fake_conforms_up_to_training(device: Context, operator: str) -> None:
    """Late results, poisoned memory, immutable arrays and missing dtypes make no operator wrong."""
    cases = each_once(c for c in plan(device, level=2, operators=[operator]) if is_affected(device, c))
    assert cases or device.device.type != "fake_late"
    assert not wrong(device, cases)


@pytest.mark.thorough
@pytest.mark.parametrize(("device", "operator"), ALL, indirect=["device"])
def test_the_fake_conforms_up_to_training_in_all_pairs(device: Context, operator: str) -> None:
    """Every operator passes on every device, in every pair of property, dtype and layout that the option affects."""
    cases = pairwise(c for c in plan(device, level=2, operators=[operator]) if is_affected(device, c))
    assert cases or device.device.type != "fake_late"
    assert not wrong(device, cases)


def test_the_device_itself_conforms_to_everything(device: Context) -> None:
    """All cases of the device itself pass, on all levels: memory, copies, exchange, streams, late errors, threads."""
    cases = plan(device, operators=[DEVICE])
    assert {c.level for c in cases} == {0, 1, 2, 3}
    assert not wrong(device, cases)


@pytest.mark.parametrize(
    "pattern",
    [
        "cast/value/float32/*",  # The case converts to a dtype that the device does not support.
        "filled/errors/*",  # An error text of the array library was not replaced.
        "nextafter/special/float16/*",  # The next number was computed in float64 instead of the operand's dtype.
        "view_dtype/aliasing/*",  # A write through the view did not reach the base on a device with immutable arrays.
    ],
)
def test_what_the_fake_brought_to_light_stays_mended(device: Context, pattern: str) -> None:
    """Cases beyond training that failed on one of these devices pass on all of them."""
    cases = plan(device, patterns=[pattern])
    assert cases
    assert not wrong(device, cases)
