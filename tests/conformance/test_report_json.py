"""The JSON form of a run: a run is read back unchanged, and errors of an invalid report name the position."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from candelabra_conformance import model
from candelabra_conformance.model import Run
from candelabra_conformance.report import ReportError, from_json, read_json, schema, to_json, write_json
from candelabra_conformance.report.json_form import COLUMNS, SCHEMA
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.example_runs import green_run, large_run, nasty_run, result, run


def _without_nan(sample: Run) -> Run:
    """Replace NaN by a number that occurs nowhere else, so that equal runs compare equal."""
    sized = [replace(r, ulp=-1.0) if r.ulp is not None and math.isnan(r.ulp) else r for r in sample.results]
    return replace(sample, results=tuple(sorted(sized, key=lambda r: r.case)))


UNFINISHED = replace(green_run(), remaining={2: 7, 3: 100})


@pytest.mark.parametrize(
    "sample", [green_run(), nasty_run(), UNFINISHED, run()], ids=["green", "nasty", "part", "empty"]
)
def test_a_run_survives_being_written_and_read(sample: Run) -> None:
    """Every field of every result is read back, also half a surrogate pair and NaN; rows are sorted by case."""
    back = from_json(to_json(sample))
    assert _without_nan(back) == _without_nan(sample)
    assert [r.case for r in back.results] == sorted(r.case for r in sample.results)
    assert {r.case: r.case.level for r in back.results} == {r.case: r.case.level for r in sample.results}
    assert back.level == sample.level


@given(message=st.text(), ulp=st.none() | st.floats(), seconds=st.floats(min_value=0), layout=st.text(max_size=5))
def test_any_text_and_any_number_survives(message: str, ulp: float | None, seconds: float, layout: str) -> None:
    """The form can represent every text and every float."""
    case = replace(result("a/b").case, layout=layout)
    sample = replace(result("a/b"), case=case, message=message, ulp=ulp, seconds=seconds)
    (back,) = from_json(to_json(run(sample))).results
    assert repr(back) == repr(sample)


def test_the_text_does_not_depend_on_the_order_of_results() -> None:
    """Workers finish in any order; the same results give the same bytes."""
    sample = large_run(10)
    shuffled = list(sample.results)
    random.Random(5).shuffle(shuffled)
    assert to_json(replace(sample, results=tuple(shuffled))) == to_json(sample)


def test_the_form_is_what_the_published_schema_says() -> None:
    """An independent validator accepts the output for every kind of run."""
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    for sample in (green_run(), nasty_run(), run(), large_run(3), UNFINISHED):
        validator.validate(json.loads(to_json(sample)))
    assert schema()["properties"]["schema"]["const"] == SCHEMA
    assert tuple(schema()["properties"]["columns"]["const"]) == COLUMNS
    assert schema()["$defs"]["verdict"]["enum"] == list(model.VERDICTS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 2), ("kind", "other"), ("level", 9), ("results", [["a", "b", "", "", 1, "passd"]]), ("stale", [1]),
        ("remaining", {"4": 1}),
    ],
)  # fmt: skip
def test_the_schema_refuses_what_is_no_report(key: str, value: Any) -> None:
    """The published schema rejects invalid reports."""
    data = json.loads(to_json(nasty_run())) | {key: value}
    with pytest.raises(jsonschema.ValidationError, match=r"."):
        jsonschema.validate(data, schema())


def test_a_result_is_a_line_and_leaves_out_what_it_does_not_say() -> None:
    """A passed case without further information is a short row, so that a report of 50,000 cases stays small."""
    text = to_json(run(result("softmax/value/float16/transposed", level=2)))
    assert '\n["softmax","value","float16","transposed",2,"passed"]\n' in text
    assert text.isascii()


def test_it_stays_compact() -> None:
    """A case needs at most 100 bytes on average if nine in ten pass."""
    sample = large_run(100)
    assert len(to_json(sample)) < 100 * len(sample.results)


def test_the_summary_is_there_for_those_who_read_json_only() -> None:
    """Level and counts are in the file, although they can be computed."""
    data = json.loads(to_json(nasty_run()))
    assert data["level"] == -1
    assert data["counts"]["crashed"] == 2
    assert sum(data["counts"].values()) == len(data["results"])


def test_options_of_other_kinds_become_what_json_knows() -> None:
    """Tuples and sets become lists, paths become text, infinities become their texts."""
    sample = run(options={"only": ("b", "a"), "skip": {"y", "x"}, "path": Path("a"), "limit": math.inf, 1: True})
    assert from_json(to_json(sample)).options == {
        "only": ["b", "a"],
        "skip": ["x", "y"],
        "path": "a",
        "limit": "inf",
        "1": True,
    }


def test_keys_that_are_not_known_are_passed_over() -> None:
    """A later release of the same schema may add keys."""
    data = json.loads(to_json(green_run())) | {"weather": "fine"}
    assert from_json(json.dumps(data)) == replace(green_run(), results=from_json(to_json(green_run())).results)


def _changed(**changes: Any) -> str:
    data = json.loads(to_json(green_run()))
    for key, value in changes.items():
        if value is None:
            del data[key]
        else:
            data[key] = value
    return json.dumps(data)


def _row(**changes: Any) -> str:
    row = (
        dict.fromkeys(COLUMNS, "")
        | {"level": 1, "verdict": "passed", "seconds": 0, "ulp": None, "missing": [], "uses": []}
        | changes
    )
    return _changed(results=[json.loads(to_json(green_run()))["results"][0], list(row.values())])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"^not JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[]", r"^not a report: expected an object whose kind is 'candelabra-conformance'$"),
        ('{"kind": "x"}', r"^not a report: expected an object whose kind is 'candelabra-conformance'$"),
        (_changed(schema=2), r"^schema 2 is newer than what this version reads \(1\); install a newer suite$"),
        (_changed(schema=0), r"^schema: expected a version from 1 to 1, got 0$"),
        (_changed(schema=True), r"^schema: expected an integer, got True$"),
        (_changed(results=None), r"^results: missing$"),
        (_changed(results={}), r"^results: expected a list, got \{\}$"),
        (_changed(columns=["operator"]), r"^columns: property, dtype, layout, level, verdict missing$"),
        (_changed(columns=[1]), r"^columns\[0\]: expected a text, got 1$"),
        (_changed(results=[3]), r"^results\[0\]: expected a list of at most 15 columns, got 3$"),
        (_changed(results=[["add", "value"]]), r"^results\[0\]\.dtype: missing$"),
        (_row(verdict="passd"), r"^results\[1\]\.verdict: expected one of passed, failed, .*, got 'passd'$"),
        (_row(level=4), r"^results\[1\]\.level: expected one of 0, 1, 2, 3, got 4$"),
        (_row(level="1"), r"^results\[1\]\.level: expected an integer, got '1'$"),
        (_row(ulp="big"), r'^results\[1\]\.ulp: expected a number, "inf" or "nan", got \'big\'$'),
        (_row(message=None), r"^results\[1\]\.message: expected a text, got None$"),
        (_row(uses="exp"), r"^results\[1\]\.uses: expected a list, got 'exp'$"),
        (_row(missing=["exp", 1]), r"^results\[1\]\.missing\[1\]: expected a text, got 1$"),
        (_changed(seconds="soon"), r'^seconds: expected a number, "inf" or "nan", got \'soon\'$'),
        (_changed(subject={"facts": {}}), r"^subject\.device: missing$"),
        (_changed(subject={"facts": {"driver": 3}}), r"^subject\.facts\.driver: expected a text, got 3$"),
        (_changed(next_kernels=["exp"]), r"^next_kernels\[0\]: expected \[operator, .*\], got 'exp'$"),
        (_changed(next_kernels=[["exp", [1], [], False]]), r"^next_kernels\[0\]\[1\]\[0\]: expected a text, got 1$"),
        (_changed(next_kernels=[["exp", [], [], 1]]), r"^next_kernels\[0\]\[3\]: expected true or false, got 1$"),
        (_changed(next_kernels=[["exp", [], [], True, 1]]), r"^next_kernels\[0\]\[4\]: expected true or false, got 1$"),
        (_changed(options=[]), r"^options: expected an object, got \[\]$"),
        (_changed(remaining=[]), r"^remaining: expected an object, got \[\]$"),
        (_changed(remaining={"4": 1}), r"^remaining: expected one of 0, 1, 2, 3, got '4'$"),
        (_changed(remaining={"3": "x"}), r"^remaining\.3: expected an integer, got 'x'$"),
    ],
)
def test_a_malformed_report_is_refused_by_naming_the_place(text: str, message: str) -> None:
    """The message identifies the error for a reader who does not know this code."""
    with pytest.raises(ReportError, match=message):
        from_json(text)


def test_a_file_is_written_whole_and_read_back(tmp_path: Path) -> None:
    """The folder contains only the report."""
    write_json(nasty_run(), tmp_path / "run.json")
    assert _without_nan(read_json(tmp_path / "run.json")) == _without_nan(nasty_run())
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    """The unfinished file is removed if the last step fails."""
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError, match=r"run\.json"):
        write_json(green_run(), tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    """The message names the file, since the command line may have several."""
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReportError, match=r"a\.json: not a report: expected an object"):
        read_json(tmp_path / "a.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ReportError, match=r"b\.json: not a report: not UTF-8 text \(invalid start byte\)"):
        read_json(tmp_path / "b.json")
