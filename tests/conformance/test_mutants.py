"""Mutants: the unmodified backend passes, mutants of every family are caught, and reports describe the findings."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.backend import Backend
from candelabra.library import plugins
from candelabra_conformance.context import Context
from candelabra_conformance.fake import FakeAccelerator
from candelabra_conformance.model import BAD, Case
from candelabra_conformance.mutants import matrix, reporting
from candelabra_conformance.mutants.__main__ import main
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import (
    ELSEWHERE,
    HEALTHY,
    KILLED,
    SURVIVED,
    SYSTEMATIC,
    MutantOutcome,
    combined,
    family_of,
    hunt,
    hunt_operator,
    installed,
)
from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import CATALOGUE, Mutant, array_of, listed, payload_of
from candelabra_conformance.mutants.systematic import Switch, faults
from candelabra_conformance.records import everything_tested, name_of
from candelabra_conformance.suite import plan, run_case

from tests.conformance.covering import each_once
from tests.sampling import sampled

CATALOGUED = load()
EVERYDAY = ("device", "add", "softmax", "index_put", "basic_index", "cumsum", "random_normal")
FEW = ("device", "softmax", "basic_index")
"""Those of ``make test``: memory and streams, a kernel, and a view."""


def mutants_of_families() -> list[Any]:
    """Return two mutants of each family, the first of the alphabet and one from its middle. ``make test`` tries the
    first ones of a third of the families.
    """
    families: dict[str, list[str]] = {}
    for name in sorted(CATALOGUED):
        families.setdefault(CATALOGUED[name].family, []).append(name)
    firsts = {names[0] for names in families.values()}
    further = {names[len(names) // 2] for names in families.values()} - firsts
    return [*sampled(3, firsts), *(pytest.param(name, marks=pytest.mark.thorough) for name in sorted(further))]


# -- the unmodified backend -------------------------------------------------------------------------------------------
KINDS = pytest.mark.parametrize(
    "options", [{}, {"views": True}, {"mutable": False}], ids=["strided", "views", "immutable"]
)


def failures(cases: list[Case], context: Context) -> dict[str, str]:
    """Return the failed cases with their messages."""
    return {case.id: result.message for case in cases if (result := run_case(context, case)).verdict in BAD}


def test_the_unbroken_mirror_passes() -> None:
    """An unmodified mirror passes the cases of the device, of a kernel and of a view."""
    with installed(Mirror("sound")) as context:
        cases = each_once(plan(context, operators=FEW))
        assert {case.operator for case in cases} == set(FEW)
        assert failures(cases, context) == {}


@pytest.mark.thorough
@KINDS
def test_the_unbroken_mirror_passes_all_cases(options: dict[str, Any]) -> None:
    """An unmodified mirror passes in every dtype and layout."""
    with installed(Mirror("sound", **options)) as context:
        cases = plan(context, operators=EVERYDAY)
        assert len(cases) > 500
        assert failures(cases, context) == {}


def test_a_mirror_is_not_the_reference() -> None:
    """A mirror is a separate device: its payloads expose only a shape, and are counted while they exist."""
    made = Mirror("glass")
    with installed(made) as context:
        tensor = cd.ones(4, 4, device=context.device)
        assert isinstance(tensor._payload, Image)
        assert plugins.reference_device() != context.device
        assert made.memory(0) == {"allocated": 64}
        row = tensor[1]
        del tensor
        assert made.memory(0) == {"allocated": 64}
        del row
        assert made.memory(0) == {"allocated": 0}
        with pytest.raises(TypeError, match="an Image has no truth value"):
            bool(made.empty(0, (), cd.float32))
        with pytest.raises(TypeError, match="an Image cannot be compared"):
            made.empty(0, (), cd.float32) == 0  # noqa: B015


def test_a_mirror_refuses_what_would_go_unnoticed() -> None:
    """Foreign memory, views beyond the end, writes to immutable arrays, and calls without payloads are errors."""
    made, frozen = Mirror("glass"), Mirror("ice", mutable=False)
    here, there = made.empty(0, (2,), cd.float32), made.empty(1, (2,), cd.float32)
    with pytest.raises(RuntimeError, match="memory of mirror number 1 cannot be read from number 0"):
        made.table["add"](here, there)
    with pytest.raises(ValueError, match="reaches beyond its memory"):
        made.restride(here, (2,), (2,), 0)
    with pytest.raises(TypeError, match="an array that never changes"):
        frozen.copy_(here, here)
    with pytest.raises(TypeError, match="without a payload"):
        made.table["neg"](1.0)


# -- the catalogue ----------------------------------------------------------------------------------------------------
def test_the_catalogue_says_what_is_wrong() -> None:
    """Every mutant has a sentence, existing operators and a pattern of cases, and can be created."""
    assert len(CATALOGUED) >= 200
    assert len({m.family for m in CATALOGUED.values()}) >= 15
    tested = set(map(name_of, everything_tested()))
    for mutant in CATALOGUED.values():
        assert mutant.fault.endswith("."), mutant.name
        assert mutant.caught_by, mutant.name
        assert [name for name in mutant.operators if name not in tested] == []
        backend = mutant.make()
        assert backend.name == mutant.device_type, mutant.name
        assert isinstance(backend, (Mirror, FakeAccelerator))


@pytest.mark.parametrize("name", mutants_of_families())
def test_a_case_that_names_the_fault_catches_it(name: str) -> None:
    """Mutants are caught by a case whose id names the fault. `make mutants` tries all of them."""
    finding = hunt(name)
    assert finding.verdict == KILLED, finding
    assert CATALOGUED[name].named_by(finding.caught_by)
    assert finding.message


@pytest.mark.thorough
def test_a_sound_backend_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend without a fault is not caught: the suite has no false positives."""
    sound = Mutant("no-mutant", "Nothing is wrong.", lambda: Mirror("no_mutant"), ("neg", "sum"), ("*",), "none")
    monkeypatch.setitem(CATALOGUE, sound.name, sound)
    finding = hunt(sound.name, thorough=True)
    assert (finding.verdict, finding.properties) == (SURVIVED, {})


@pytest.mark.thorough
def test_what_fails_on_a_sound_backend_too_is_no_catch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that also fails on a correct backend of the same kind does not catch the mutant."""
    monkeypatch.setattr(type(HEALTHY), "fails", lambda self, backend, case: True)
    assert hunt("extremes-pass-over-nan").verdict == SURVIVED


def only_cases_of(monkeypatch: pytest.MonkeyPatch, *properties: str) -> None:
    """Let hunts run the cases of these properties in float32 only."""

    def few(*args: Any, **options: Any) -> list[Case]:
        return [case for case in plan(*args, **options) if case.property in properties and case.dtype == "float32"]

    monkeypatch.setattr("candelabra_conformance.mutants.hunting.plan", few)


def test_a_catch_by_another_case_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that is caught only by a case that does not name the fault is reported as such."""
    mutant = CATALOGUED["negation-subtracts-from-zero"]
    changed = Mutant(mutant.name, mutant.fault, mutant.make, mutant.operators, ("neg/threads/*",), mutant.family)
    monkeypatch.setitem(CATALOGUE, mutant.name, changed)
    only_cases_of(monkeypatch, "special", "threads")
    finding = hunt(mutant.name)
    assert finding.verdict == ELSEWHERE
    assert finding.caught_by.startswith("neg/special/")


def test_each_operator_has_to_catch_its_own_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a mutant of two kernels the finding names the operator whose own cases do not catch its kernel alone."""
    mutant = CATALOGUED["extremes-pass-over-nan"]
    assert mutant.make_one is not None
    assert len(mutant.operators) > 1
    first, second = mutant.operators[:2]

    def make_one(operator: str) -> Backend:
        return mutant.make() if operator == first else Mirror("sound_for_once")

    changed = replace(mutant, operators=(first, second), make_one=make_one)
    monkeypatch.setitem(CATALOGUE, mutant.name, changed)
    finding = hunt(mutant.name)
    assert (finding.verdict, finding.own, finding.missed) == (KILLED, False, (second,))


def test_one_broken_kernel_leaves_the_others_correct() -> None:
    """``make_one`` breaks the kernels of one operator only, in place too."""
    mutant = CATALOGUED["writes-in-c-order"]
    assert mutant.make_one is not None
    one, every = mutant.make_one("exp"), mutant.make()
    assert isinstance(one, Mirror)
    assert isinstance(every, Mirror)
    names = {name: kernel.__name__ for name, kernel in one.table.items() if name in ("exp_", "neg_", "sub_")}
    assert names == {"exp_": "<lambda>", "neg_": "neg", "sub_": "sub"}
    assert {every.table[name].__name__ for name in names} == {"<lambda>"}


def test_quick_hunts_run_quick_cases_only() -> None:
    """With ``quick`` a mutant is caught only by cases that ``--quick --level 2`` runs."""
    assert hunt("keepdim-is-ignored", quick=True).quick


@pytest.mark.thorough
def test_quick_hunts_miss_what_other_cases_catch() -> None:
    """A mutant that only the other cases catch survives them, and computed mutants are caught by quick cases only."""
    finding = hunt("unary-results-take-turns", quick=True)
    assert (finding.verdict, finding.quick, finding.own) == (SURVIVED, False, False)
    assert hunt("unary-results-take-turns").own
    assert all(f.quick for f in hunt_operator("trunc", only_quick=True) if f.verdict == KILLED)


def test_two_mutants_of_one_name_are_refused() -> None:
    """A name is listed once."""
    with pytest.raises(ValueError, match="mutant 'keepdim-is-ignored' is listed twice"):
        listed(CATALOGUED["keepdim-is-ignored"])


# -- computed mutants -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operator", ["softmax", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("cumsum", "maximum"))]
)
def test_systematic_mutants_are_caught(operator: str) -> None:
    """The faults that are derived for every kernel are caught by the operator's own cases if a sample reaches them."""
    findings = hunt_operator(operator)
    assert len(findings) > 25
    assert [f.mutant for f in findings if f.verdict != KILLED and f.differed] == []
    assert sum(f.own for f in findings) > 20
    assert all(f.own == (f.verdict == KILLED) for f in findings)
    assert "last element" in {f.fault for f in findings if f.quick}


def test_systematic_faults_know_whether_they_made_a_difference() -> None:
    """A fault that never changes a result is distinguished from one that no case detects."""
    made = Mirror("glass")
    switch = Switch(made, made.table["neg"])
    found = {fault.name: fault for fault in faults("neg", switch)}
    image = made.from_host(0, memoryview(bytes(8)), (2,), cd.float32)
    switch.fault = found["no dims"]
    switch(image)
    assert not switch.differed
    switch.fault = found["last element"]
    switch(image)
    assert switch.differed
    switch.fault = found["no elements refused"]
    with pytest.raises(RuntimeError, match="a launch over no elements"):
        switch(made.empty(0, (0,), cd.float32))


def test_a_kernel_that_declines_has_no_faults_for_that_call() -> None:
    """A fault does not change a call that the kernel declines, and the core goes on with the operator's body."""
    made = Mirror("glass")
    switch = Switch(made, lambda *args: NotImplemented)
    for fault in faults("softmax", switch):
        switch.fault = fault
        assert switch(made.from_host(0, memoryview(bytes(8)), (2,), cd.float32), 0) is NotImplemented, fault.name
    assert not switch.differed


def test_a_family_needs_one_operator_for_large_limits() -> None:
    """Mutants of a whole family, with limits beyond 65,000, are caught if one operator's own cases catch them."""
    found = [
        MutantOutcome("sum: rows beyond 65,535", SYSTEMATIC, "rows beyond 65,535", SURVIVED, of_family="reductions"),
        MutantOutcome("all: rows beyond 65,535", SYSTEMATIC, "rows beyond 65,535", KILLED, "all/…", own=True,
                of_family="reductions"),
        MutantOutcome("neg: negated", SYSTEMATIC, "negated", KILLED, own=True),
    ]  # fmt: skip
    together = combined(found)
    assert [(f.mutant, f.verdict) for f in together] == [
        ("neg: negated", KILLED), ("reductions: rows beyond 65,535", KILLED),
    ]  # fmt: skip
    assert family_of("add_") == "elementwise"
    assert family_of("conv") == "nn"


def test_layouts_of_one_kind_are_misread() -> None:
    """The faults of strides change the calls with a layout of their kind, and no others."""
    made = Mirror("glass")
    switch = Switch(made, made.table["neg"])
    found = {fault.name: fault for fault in faults("neg", switch)}
    whole = payload_of(made, np.arange(24, dtype=np.float32), 0)
    views = {
        "gaps between rows ignored": made.restride(whole, (3, 2), (5, 1), 1),
        "steps ignored": made.restride(whole, (5,), (2,), 0),
        "permutations ignored": made.restride(whole, (3, 2), (1, 3), 0),
        "expansions ignored": made.restride(whole, (3, 2), (0, 1), 0),
        "offsets ignored": made.restride(whole, (3,), (1,), 4),
    }
    for name in views:
        for kind, view in views.items():
            switch.fault, switch.differed = found[name], False
            got, right = array_of(made, switch(view)), array_of(made, made.table["neg"](view))
            expected = kind == name or (name == "offsets ignored" and kind == "gaps between rows ignored")
            assert switch.differed == expected, (name, kind)
            assert (got.tobytes() != right.tobytes()) == expected, (name, kind)


@pytest.mark.parametrize(("wide", "narrow", "value"), [
    ("int64", "float64", 2**53 + 1), ("int64", "float32", 2**24 + 1), ("int64", "int32", 2**31),
    ("int32", "float32", 2**24 + 1), ("float64", "float32", 1 + 2.0**-40),
])  # fmt: skip
def test_dtypes_are_computed_in_narrower_ones(wide: str, narrow: str, value: float) -> None:
    """The faults of width change numbers that the narrower dtype does not represent."""
    made = Mirror("glass")
    switch = Switch(made, made.table["abs"])
    found = {fault.name: fault for fault in faults("abs", switch)}
    for number, expected in ((value, True), (3, False)):
        switch.fault, switch.differed = found[f"{wide} computed in {narrow}"], False
        switch(payload_of(made, np.array([number], wide), 0))
        assert switch.differed is expected


def test_a_narrower_dtype_that_changes_no_result_is_no_fault() -> None:
    """The sign bit of an integer is that of its nearest float, but not that of its last 32 bits."""
    found = {f.fault for f in hunt_operator("signbit") if f.verdict == KILLED}
    assert "int64 computed in int32" in found
    assert not found & {"int64 computed in float64", "int64 computed in float32", "int32 computed in float32"}


def test_strides_that_are_never_read_are_no_fault() -> None:
    """Other numbers in an operand make a difference only to a kernel that reads them."""
    made = Mirror("glass")
    for kernel, expected in ((made.table["add"], True), (lambda x, y: made.table["neg"](x), False)):
        switch = Switch(made, kernel)
        fault = next(f for f in faults("add", switch) if f.name == "strides of other ignored")
        assert fault.matters is not None
        switch.fault = replace(fault, wrong=fault.matters)
        switch(*(payload_of(made, np.ones(2, np.float32), 0) for _ in range(2)))
        assert switch.differed is expected


def test_a_kernel_of_one_value_cannot_ignore_the_parameter() -> None:
    """A kernel that declines all calls with another value of a parameter than one has no mutant that ignores it."""
    made = Mirror("glass")
    switch = Switch(made, lambda x, mode: x if mode == 0 else NotImplemented)
    switch.watched = list(faults("neg", switch))
    image = payload_of(made, np.ones(2, np.float32), 0)
    switch(image, 0)
    assert not switch.serves_one(1)
    switch(image, 2)
    assert switch.serves_one(1)


def test_a_target_that_is_filled_without_gaps_is_in_order() -> None:
    """Writing one number everywhere as if a permuted target were contiguous is right, with several it is wrong."""
    made = Mirror("glass")
    for name, values, expected in (("filled_", (1.5,), False), ("copied_", (np.arange(6, dtype=np.float32),), True)):
        switch = Switch(made, made.table[name])
        switch.watched = list(faults(name, switch))
        target = made.restride(payload_of(made, np.zeros(6, np.float32), 0), (3, 2), (1, 3), 0)
        switch(target, *(payload_of(made, v.reshape(3, 2), 0) if isinstance(v, np.ndarray) else v for v in values))
        assert (f"{name}: permutations of the target ignored" in switch.reached) is expected


def test_what_a_kernel_refuses_is_replaced_by_other_values() -> None:
    """A fault whose values are invalid, such as an index of 0 among pivots from 1, uses valid ones instead."""
    found = {f.fault: f for f in hunt_operator("pivots_to_permutation")}
    assert found["inputs beyond 64"].verdict == KILLED
    assert found["inputs beyond 64"].own


def test_late_results_read_what_their_inputs_have_become() -> None:
    """A result that is computed when it is read shows a later write into its input."""
    made = Mirror("glass")
    switch = Switch(made, made.table["neg"])
    switch.fault = next(f for f in faults("neg", switch) if f.name == "computed when it is read")
    one = payload_of(made, np.ones(2, np.float32), 0)
    out = switch(one)
    made.copy_(one, payload_of(made, np.zeros(2, np.float32), 0))
    assert not switch.differed
    assert array_of(made, out).tolist() == [0, 0]
    assert switch.differed


# -- runs and reports -------------------------------------------------------------------------------------------------
@pytest.mark.thorough
def test_a_run_in_processes_finds_the_same() -> None:
    """Two worker processes find the same mutants as this process."""
    todo = matrix.tasks(matrix.chosen(["keepdim-is-ignored", "comparisons-are-numbers"]), [], thorough=False)
    found = dict(matrix.run(todo, jobs=2))
    assert sorted(found) == ["comparisons-are-numbers", "keepdim-is-ignored"]
    assert [f.verdict for findings in found.values() for f in findings] == [KILLED, KILLED]
    assert found["keepdim-is-ignored"][0].caught_by == hunt("keepdim-is-ignored").caught_by


def test_mutants_are_chosen_by_name_and_family() -> None:
    """Names and families may have wildcards; a pattern without a match is refused with the list of families."""
    assert matrix.chosen(["keepdim-*"]) == ["keepdim-is-ignored"]
    assert {CATALOGUED[name].family for name in matrix.chosen(["random", "layout"])} == {"layout", "random"}
    assert len(matrix.chosen([])) == len(CATALOGUED)
    assert matrix.operators_with_kernels(["soft*"]) == ["softmax", "softmax_backward"]
    with pytest.raises(
        ValueError, match="no mutant and no family of mutants is called 'dragon'; the families: claims,"
    ):
        matrix.chosen(["dragon"])
    with pytest.raises(ValueError, match="no operator with a kernel matches dragon"):
        matrix.operators_with_kernels(["dragon"])


FOUND = [
    MutantOutcome(
        "keepdim-is-ignored", "shapes", "Fault one.", KILLED, "amax/value/bool/contiguous",
        {"value": "amax/value/bool/contiguous", "gradient": "mean/gradient/float32/contiguous"},
        own=True, quick=True,
    ),
    MutantOutcome("nan-equals-nan", "special_values", "Fault two.", SURVIVED, missed=("eq",)),
    MutantOutcome("neg: no dims", SYSTEMATIC, "no dims", SURVIVED, differed=False),
    MutantOutcome("sum: dim ignored", SYSTEMATIC, "dim ignored", SURVIVED),
    MutantOutcome("neg: negated", SYSTEMATIC, "negated", KILLED, "neg/value/int8/contiguous", {"value": "…"}, own=True),
]  # fmt: skip


def test_the_page_shows_matrix_and_survivors() -> None:
    """The Markdown page counts by family, marks the properties that catch a mutant, and names the survivors."""
    page = reporting.markdown(FOUND)
    assert "**5 mutants: 40 % killed, 40 % by the operators' own cases, 20 % by the quick ones.**" in page
    assert "| shapes | 1 | 1 | 0 | 0 | 1 | 1 |" in page
    assert "| **all** | 2 | 1 | 0 | 1 | 1 | 1 |" in page
    assert "own cases:\n\n- nan-equals-nan (special_values), in eq. Fault two." in page
    row = next(line for line in page.splitlines() if line.startswith("| keepdim-is-ignored |"))
    assert Counter(row.replace(" ", "").split("|"))["◆"] == 1
    assert Counter(row.replace(" ", "").split("|"))["●"] == 1
    assert "- nan-equals-nan (special_values): **survived**, `eq/special/*` was to catch it. Fault two." in page
    assert "| keepdim-is-ignored | yes | yes |" in page
    assert "| a parameter ignored | 1 | 0 | 0 | 1 | 0 |" in page
    assert "a check is missing.\n\n`sum: dim ignored`" in page
    assert "reaches the fault.\n\n`neg: no dims`" in page
    assert "Properties after the first one that catches a mutant were not tried." in page
    assert "were not tried" not in reporting.markdown(FOUND, thorough=True)
    assert "- negated, since (-Q)(-R) is a decomposition as well: linalg_qr." in page
    assert "- a dtype computed in a narrower one, if no number of the dtype changes a result, as in isnan" in page


def test_the_json_is_stable() -> None:
    """The JSON form has a schema number, counts, and the findings in an order that does not depend on the run's."""
    told = json.loads(reporting.as_json(FOUND))
    assert told["schema"] == reporting.SCHEMA
    assert told["counts"] == {KILLED: 2, SURVIVED: 3}
    assert reporting.as_json(FOUND) == reporting.as_json(FOUND[::-1])
    assert "seconds" not in told["mutants"][0]


def test_the_command_hunts_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command runs the named mutants, writes both reports, and exits with 0 if all are killed as expected."""
    assert main(["keepdim-is-ignored", "--systematic", "frac", "--jobs", "1", "--report", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "1 mutants of the catalogue: 1 killed, 0 by another case, 0 survived" in out
    assert "mutants computed:" in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mutants.json", "mutants.md"]


def test_the_command_ends_with_1_when_a_mutant_survives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command reports a survivor with its fault, and fails."""
    made: Backend = Mirror("nothing_wrong")
    sound = Mutant("nothing-wrong", "Nothing is wrong.", lambda: made, ("neg",), ("neg/*",), "none")
    monkeypatch.setitem(CATALOGUE, sound.name, sound)
    only_cases_of(monkeypatch, "value")
    assert main(["nothing-wrong", "--jobs", "1"]) == 1
    assert "SURVIVED nothing-wrong: Nothing is wrong." in capsys.readouterr().out


def test_the_command_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """``--list`` prints names and faults without a run; an unknown name is an error that lists the valid ones."""
    assert main(["random", "--list"]) == 0
    assert "the-seed-is-ignored" in capsys.readouterr().out
    assert main(["dragon"]) == 2
    assert "error: no mutant and no family of mutants is called 'dragon'" in capsys.readouterr().out


def test_contexts_of_mutants_leave_nothing_behind() -> None:
    """After the run the mutant's device type is uninstalled."""
    hunt("keepdim-is-ignored")
    assert "keepdim_is_ignored" not in plugins.plugins()
    with installed(Mirror("keepdim_is_ignored")) as context:
        assert isinstance(context, Context)
