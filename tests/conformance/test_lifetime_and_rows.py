"""Time, lifetime and lists of rows: the messages for devices whose results depend on later calls or on other rows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.model import FAILED, PASSED, SKIPPED, Result
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.catalogue.row_lists import MirrorRowKernel
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.properties import memory_lifetime, result_lifetime
from candelabra_conformance.suite import plan, run_case

MESSAGES = {
    ("unary-results-are-computed-late", "exp/overwritten/float32/contiguous"): (
        "^the result is other once an input is overwritten after the call"
    ),
    ("unary-results-take-turns", "neg/alive/float32/contiguous"): (
        "^result 232 of 1000 is other after a write into the last one"
    ),
    ("sums-take-turns", "device/alive"): "^tensor .* of 3000 that exist at once has the values of another one",
    ("other-devices-get-zeros", "sub/indices/float32/contiguous"): "^on other_devices_get_zeros:1: .* elements wrong",
    ("results-are-on-the-first-device", "sum/indices/float32/contiguous"): (
        "^on results_are_on_the_first_device:1: RuntimeError: memory of mirror number 0 cannot be read from number 1"
    ),
    ("other-devices-copy-shortly", "device/indices/float32"): r"^on other_devices_copy_shortly:1: ",
    ("large-buffers-are-kept", "device/handed-over"): (
        r"^from_host\(\) of 65540 bytes: a later change of the buffer changes the payload"
    ),
    ("capsules-do-not-keep-memory", "device/dlpack-lifetime"): (
        "^a DLPack capsule has other values once its source is gone"
    ),
    ("sgd-step-writes-the-first-row", "sgd_step/rows/float32/contiguous"): "^row 1 of 7: .* elements wrong",
    ("adam-step-scales-the-gradient", "adam_step/rows/float32/contiguous"): "^row 0 of .*: 'grad' was written to",
    ("sgd-step-writes-nothing", "sgd_step/training/float32/contiguous"): (
        "^a loss of (.*) is .* after 29 steps; less than half is due"
    ),
}


def run(context: Context, case: str) -> Result:
    """Run the case of an id."""
    (found,) = [c for c in plan(context, operators=[case.split("/")[0]]) if c.id == case]
    return run_case(context, found, explained=False)


@pytest.mark.parametrize(("mutant", "case"), MESSAGES, ids=[mutant for mutant, _ in MESSAGES])
def test_a_failure_says_what_happened_after_the_call(mutant: str, case: str) -> None:
    """The text of a failure names the write, the number of the result, the device, or the row."""
    with installed(load()[mutant].make()) as context:
        result = run(context, case)
    assert result.verdict == FAILED
    assert re.search(MESSAGES[mutant, case], result.message), result.message


def test_one_device_has_no_cases_of_others() -> None:
    """A device type with one index has no cases of other indices, and one with several has them."""
    assert not [c for c in plan(Context("cpu"), operators=["device", "exp"]) if c.property == "indices"]
    with installed(Mirror("pair")) as context:
        found = {c.operator: c.level for c in plan(context, operators=["device", "exp"]) if c.property == "indices"}
        assert found == {"device": 1, "exp": 2}
        assert run(context, "exp/indices/float32/contiguous").verdict == PASSED
        assert run(context, "device/indices/float32").verdict == PASSED


def test_a_wrong_copy_of_a_result_is_reported_with_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result on another device that is not copied there correctly fails with the name of the device."""
    made = Mirror("pair")
    right = made.copy_

    def short(destination: Any, source: Any) -> Any:
        return right(destination, source) if destination.index == 0 else destination

    monkeypatch.setattr(made, "copy_", short)
    made.table["copied_"] = short
    with installed(made) as context:
        result = run(context, "exp/indices/float32/contiguous")
    assert result.message.startswith("on pair:1: a copy of the result has other values")


@pytest.mark.parametrize("change", ["array", "source"])
def test_a_copy_that_shares_memory_is_reported_with_its_size(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """A tensor that changes with the array that it was copied from, and the reverse way, fail with the size."""
    context = Context("cpu")
    if change == "array":
        monkeypatch.setattr(memory_lifetime, "COPIES", {"shared": lambda a, device: cd.from_numpy(a)})
        message = r"shared of 18 bytes: a later change of the array changes the tensor"
    else:
        monkeypatch.setattr(cd.Tensor, "to", lambda self, *args, **kwargs: self)
        monkeypatch.setattr(memory_lifetime, "COPIES", {"copied": lambda a, device: cd.tensor(a)})
        message = r"18 bytes that were copied to cpu change with their source"
    monkeypatch.setattr(memory_lifetime, "LENGTHS", (17,))
    assert re.search(message, run(context, "device/handed-over").message)


# -- rows -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("operator", ["sgd_step", "amsgrad_step"])
def test_a_correct_kernel_over_rows_passes(operator: str) -> None:
    """A kernel that serves all rows by one call gets lists of one, several and many rows, and passes."""
    made = Mirror("rows")
    kernel = MirrorRowKernel(made, operator)
    count = len(kernel.names)
    lengths = []

    def over_rows(*args: Any) -> None:
        lengths.append(len(args[0]))
        kernel.run(list(args[:count]), args[count:])

    made.table[operator + "_"] = over_rows
    with installed(made) as context:
        cases = [c for c in plan(context, operators=[operator]) if c.property in ("rows", "training")]
        assert {c.level for c in cases if c.dtype == "float32"} == {2}
        results = [run_case(context, c, explained=False) for c in cases if c.dtype == "float32"]
    assert [r.verdict for r in results] == [PASSED] * 3, [r.message for r in results]
    assert {1, 130} < set(lengths)


Rows = Sequence[Sequence[Any]]


def _nothing(rows: Rows, *options: Any) -> None:
    pass


def _all_versions(rows: Rows, *options: Any) -> None:
    for row in rows:
        for tensor in row:
            tensor._counter[0] += 1


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (_nothing, "row 0 of 7: the version counter of 'param' did not move"),
        (_all_versions, "row 0 of 7: the version counter of 'grad' moved, although it is not an output"),
    ],
    ids=["none", "all"],
)
def test_versions_move_for_written_tensors_only(
    monkeypatch: pytest.MonkeyPatch, form: Callable[..., None], message: str
) -> None:
    """A form over rows increments the versions of the tensors that it writes, and no others."""
    monkeypatch.setitem(OPERATORS["sgd_step"].__dict__, "over_rows", form)
    assert run(Context("cpu"), "sgd_step/rows/float32/contiguous").message.startswith(message)


def test_a_row_of_several_shapes_is_refused() -> None:
    """The step of a mirror refuses a row whose tensors differ in shape."""
    made = Mirror("rows")
    row = [made.from_host(0, memoryview(np.zeros(n, np.float32).tobytes()), (n,), cd.float32) for n in (2, 3)]
    with pytest.raises(ValueError, match="the tensors of a row have several shapes"):
        MirrorRowKernel(made, "sgd_step").values(row, (0.1, 0.0, False))


# -- skipped ----------------------------------------------------------------------------------------------------------
def test_what_a_device_cannot_do_is_skipped_with_the_reason() -> None:
    """Writes into immutable tensors, DLPack without a claim, and operators that may differ are skipped."""
    with installed(Mirror("ice", mutable=False)) as context:
        result = run(context, "exp/alive/float32/contiguous")
        assert (result.verdict, result.message) == (SKIPPED, "a write replaces the array of an immutable tensor")
    made = Mirror("plain")
    made.capabilities = replace(made.capabilities, dlpack=None, nondeterministic=frozenset({"exp"}))
    with installed(made) as context:
        reasons = [
            run(context, case).message for case in ("device/dlpack-lifetime", "exp/overwritten/float32/contiguous")
        ]
    assert reasons == ["the backend claims no DLPack", "the backend declares the operator non-deterministic"]


def test_a_device_without_the_usual_dtypes_is_skipped() -> None:
    """A thousand results need a dtype to compute in, and DLPack one to store."""
    made = Mirror("halves")
    made.capabilities = replace(
        made.capabilities, storage=frozenset({cd.float16, cd.bool}), arithmetic=frozenset({cd.float16})
    )
    with installed(made) as context:
        with pytest.raises(NotApplicable, match="the device computes in none of the usual dtypes"):
            memory_lifetime.many_alive(context, None, "")
        with pytest.raises(NotApplicable, match="the device stores none of the usual dtypes"):
            memory_lifetime.dlpack_lifetime(context, None, "")


def test_a_capsule_that_nothing_imports_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that does not import its own capsules is not tested for their lifetime."""
    made = Mirror("exporter")
    monkeypatch.setattr(made, "from_dlpack", lambda source, index, copy: None)
    with installed(made) as context, pytest.raises(NotApplicable, match="uint8 does not go through DLPack here: "):
        memory_lifetime.dlpack_lifetime(context, None, "")


# -- further messages -------------------------------------------------------------------------------------------------
def test_imported_memory_outlives_its_capsule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that was imported through DLPack and changes when the capsule is gone fails."""
    imported: list[Any] = []
    right = cd.from_dlpack

    def remembered(source: Any) -> Any:
        imported.append(right(source))
        return imported[0]

    def reused(context: Context, values: Any) -> None:
        for tensor in imported:
            tensor.zero_()

    monkeypatch.setattr(cd, "from_dlpack", remembered)
    monkeypatch.setattr(memory_lifetime, "_overwritten_after_free", reused)
    with pytest.raises(Failure, match="imported from a DLPack capsule has other values once the capsule is gone"):
        memory_lifetime.dlpack_lifetime(Context("cpu"), None, "")


def test_a_result_on_another_device_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is not on the device of the call fails with both devices."""
    monkeypatch.setattr(result_lifetime, "called", lambda *args: cd.ones(1, device="cpu"))
    with installed(Mirror("pair")) as context:
        assert run(context, "exp/indices/float32/contiguous").message.startswith("on pair:1: the result is on cpu")


def test_an_exception_on_another_device_is_reported_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of the contract on another index fails with the device and the class of the exception."""
    made = Mirror("pair")
    right = made.empty

    def one_device(index: int, shape: tuple[int, ...], d: Any) -> Any:
        if index:
            raise OverflowError("no such device")
        return right(index, shape, d)

    monkeypatch.setattr(made, "empty", one_device)
    with installed(made) as context:
        message = run(context, "device/indices/float32").message
    assert message.startswith("on pair:1: OverflowError: no such device")
