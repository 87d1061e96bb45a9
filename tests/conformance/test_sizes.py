"""Sizes, bounds and bits: what the properties report about broken devices and unsuitable samples."""

import re

import candelabra as cd
import numpy as np
import pytest
from candelabra_conformance.context import Context
from candelabra_conformance.fake.installing import installed
from candelabra_conformance.model import FAILED, SKIPPED, Case
from candelabra_conformance.mutants.hunting import KILLED, hunt
from candelabra_conformance.samples import registry, sample
from candelabra_conformance.suite import run_case


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        (
            "copies-to-the-host-end-with-full-buffers",
            r"^from_host\(\) and to_host\(\) of \d+ bytes: other bits come out",
        ),
        ("gather-checks-65536-indices", r"^nothing is raised, RuntimeError: 'gather\(\): index 1009 is out of bounds"),
        ("cat-changes-nan", "^an element has other bits than in the operand that it is from"),
        ("sort-ends-at-65535-rows", r"^values: \d+ of 196617 elements wrong; worst at \[6553\d"),
    ],
)
def test_a_fault_of_large_inputs_is_described(mutant: str, message: str) -> None:
    """The message of the first case that catches the mutant says what is wrong."""
    finding = hunt(mutant)
    assert finding.verdict == KILLED
    assert re.search(message, finding.message), finding.message


def test_sizes_are_skipped_without_the_dtype_of_their_indices() -> None:
    """A device that does not store int64 has no samples with indices."""
    with installed("fake_indexless", missing_dtypes=("int64",)) as made:
        result = run_case(Context(f"{made.name}:0"), Case("gather", "sizes", "float32"))
    assert (result.verdict, result.message) == (SKIPPED, "the device does not store the dtypes of these samples")


def test_a_sample_of_bounds_must_be_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid index among those that must raise is a fault of the sample."""
    valid = [lambda t: iter([sample(t(3), 0, np.array([2]), note="valid")])]
    monkeypatch.setitem(registry.BOUNDS, "gather", valid)
    result = run_case(Context(str(cd.get_default_device())), Case("gather", "bounds", "float32"))
    assert result.verdict == FAILED
    assert result.message.startswith("the reference accepts this index (valid)")
