"""The cases of ``--huge``: each check passes and fails as it should at a small size, and none exceeds the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.backend import DeviceInfo
from candelabra.library import Layer
from candelabra_conformance.context import Context
from candelabra_conformance.model import FAILED, PASSED, SKIPPED, Case
from candelabra_conformance.properties import huge
from candelabra_conformance.suite import plan, run_case

from tests.lantern import LanternBackend

SMALL = 300
FAULTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "write": ("sum", lambda next, x, *rest: next(x[:-1], *rest)),
    "sum": ("sum", lambda next, x, *rest: next(x[:255], *rest)),
    "extreme": ("argmax", lambda next, x, *rest: next(x[:255], *rest)),
    "pointwise": ("add", lambda next, x, y: cd.cat((next(x[:-1], y), x[-1:]))),
    "index": ("gather", lambda next, x, dim, index: next(x, dim, index.clamp(max=255))),
    "cumsum": ("cumsum", lambda next, x, *rest: cd.cat((next(x[:255], *rest), x[255:]))),
    "cat": ("cat", lambda next, tensors, dim: next((tensors[0], ~tensors[1]), dim)),
    "transpose": ("clone", lambda next, x, *rest: next(x, *rest).flip(0)),
    "matmul": ("matmul", lambda next, x, y: cd.cat((next(x[:-1], y), next(x[:1], y)))),
}
"""A fault for each check: the operator does not reach the last elements."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, check in huge.CHECKS.items():
        monkeypatch.setitem(huge.CHECKS, name, check._replace(elements=SMALL))


def case_of(name: str) -> Case:
    """Return the case of a check."""
    return Case("device", "huge", huge.CHECKS[name].dtype, name)


def test_there_is_a_case_for_each_check_and_only_if_asked() -> None:
    """``--huge`` adds them; their ids name the check."""
    context = Context(str(cd.get_default_device()))
    ids = [case.id for case in plan(context, operators=["device"], huge=True) if case.property == "huge"]
    assert sorted(ids) == sorted(case_of(name).id for name in huge.CHECKS)
    assert not [case for case in plan(context, operators=["device"]) if case.property == "huge"]


@pytest.mark.parametrize("name", huge.CHECKS)
def test_a_correct_device_passes(name: str, lantern: LanternBackend) -> None:
    """At a small size, on the reference device and on one that serves most of the calls otherwise."""
    for device in ("cpu:0", "lantern:0"):
        result = run_case(Context(device), case_of(name))
        assert result.verdict == PASSED, result.message


@pytest.mark.parametrize("name", huge.CHECKS)
def test_an_operator_that_ends_too_early_fails(name: str) -> None:
    """The message names what was computed, with both values."""
    faulty, fault = FAULTS[name]

    def replaced(op: Any, next: Callable[..., Any], *args: Any) -> Any:
        return fault(next, *args) if op.name == faulty else next(*args)

    layer = Layer("faulty", replaced)
    try:
        with layer:
            result = run_case(Context(str(cd.get_default_device())), case_of(name))
    finally:
        layer.remove()
    assert result.verdict == FAILED
    assert ", of 300 elements: got " in result.message


def test_arrays_beyond_the_memory_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason has the memory that is left and the memory that the case needs, on the host or on the device."""
    context = Context(str(cd.get_default_device()))
    monkeypatch.setitem(huge.CHECKS, "cumsum", huge.CHECKS["cumsum"]._replace(elements=2**31 + 17))
    monkeypatch.setattr(huge, "available_memory", lambda: 3 * huge.GIB)
    result = run_case(context, case_of("cumsum"))
    assert (result.verdict, result.message) == (SKIPPED, "the host has 3.0 GiB left, and the case needs 5.0")
    monkeypatch.setattr(huge, "available_memory", lambda: 0)
    info = DeviceInfo("small", {"total_memory": 4 * huge.GIB, "shared_memory": 1 * huge.GIB})
    monkeypatch.setattr(context.instance.backend, "devices", lambda: [info])
    result = run_case(context, case_of("cumsum"))
    assert (result.verdict, result.message) == (SKIPPED, "the device has 4.0 GiB left, and the case needs 5.0")


def test_exhausted_memory_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that does not say how much memory it has may refuse the allocation."""

    def run(count: int) -> huge.Found:
        yield "empty()", cd.empty(2**50).shape, ()

    monkeypatch.setitem(huge.CHECKS, "write", huge.Check("uint8", run, 1))
    result = run_case(Context(str(cd.get_default_device())), case_of("write"))
    assert result.verdict == SKIPPED
    assert result.message.startswith("the memory does not suffice: ")


def test_the_hosts_memory_is_known() -> None:
    """It is a number of bytes that is plausible for a machine that runs these tests."""
    assert 2**26 < huge.available_memory() < 2**50
