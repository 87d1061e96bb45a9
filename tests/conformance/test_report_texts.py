"""The summaries of a run: Markdown for continuous integration, text for the terminal, a badge."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from candelabra_conformance import model, report
from candelabra_conformance.causes import declined, grouped
from candelabra_conformance.model import NextKernel, Run
from candelabra_conformance.report import print_summary, summary, tally, to_badge, to_markdown
from candelabra_conformance.report.markdown import block, code, escape, folded, table
from candelabra_conformance.report.programs import on_a_screen
from markdown_it import MarkdownIt
from rich.console import Console

from tests.conformance.example_runs import NASTY, PROGRAM, green_run, large_run, nasty_run, result, run, subject


def _printed(example: Run, width: int = 100, **limits: Any) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    print_summary(example, console, **limits)
    assert isinstance(console.file, StringIO)
    return str(console.file.getvalue())


def _html(text: str) -> str:
    """Return the HTML of an independent renderer with GitHub's tables."""
    return MarkdownIt("commonmark").enable("table").render(text)


# Markdown


def test_the_markdown_begins_with_the_outcome() -> None:
    """The first line has the outcome; the second has the subject and the suite."""
    lines = to_markdown(green_run()).split("\n")
    assert lines[0] == "## ✅ acme:0 conforms: level 3 (all dtypes and properties)"
    assert lines[2].startswith(
        "ACME X1 \\<rev 2\\> — candelabra-acme 1.0 on candelabra 0.1.0, suite 0.1.0, held against"
    )
    assert lines[4] == "4 cases in 75 s, started 2030-01-02T03:04:05Z"
    assert to_markdown(nasty_run()).startswith("## ❌ acme:0 does not conform: level none, level 3 is required\n")


def test_every_summary_says_what_remains_to_be_run() -> None:
    """A level with remaining cases is not reached, and the summary says that the run is incomplete."""
    example = replace(green_run(), remaining={2: 1, 3: 1200})
    assert example.level == 1
    for text in (to_markdown(example), _printed(example, width=200), report.to_html(example)):
        assert "1,201 cases remain, of level 2, 3" in text
    assert tally.remaining_text(replace(example, remaining={3: 1})) == "1 case remains, of level 3"
    assert "remain" not in to_markdown(green_run())


def test_the_markdown_counts_verdicts_by_level_and_by_property() -> None:
    """Only verdicts that occur have a column; a level without a case has a row too."""
    example = run(result("add/value"), result("add/out", model.FAILED), result("mul/value", model.SKIPPED, level=3))
    text = to_markdown(example)
    assert "| level | passed | failed | skipped |" in text
    assert "| 1: inference | 1 | 1 |  |" in text
    assert "| 2: training |  |  |  |" in text
    assert "| **all** | 1 | 1 | 1 |" in text
    assert "| `out` |  | 1 |  |" in text


def test_the_markdown_shows_the_first_failures_and_counts_the_rest() -> None:
    """The most basic level comes first; the summary says how many failures it omits."""
    text = to_markdown(nasty_run(), failures=2)
    assert "### 14 failures of 14 causes" in text
    shown = text.split("### 14 failures")[1].split("### What blocks")[0]
    assert shown.index("`device/copy/float32`") < shown.index("`control/value/float32/contiguous`")
    assert "… and 12 more failures: see the JSON or the HTML report." in shown
    assert "softmax/failed" not in shown
    assert "… and" not in to_markdown(nasty_run(), failures=20).split("### What blocks")[0]


def test_a_failure_in_markdown_has_its_facts_message_and_program() -> None:
    """The program can be copied from the comment."""
    example = run(
        result("exp/value/float16", model.FAILED, 2, message="wrong", reproducer=PROGRAM, ulp=3.25, route="native")
    )
    text = to_markdown(example)
    assert "**failed**, `exp/value/float16`, level 2, native, 3.25 ULP\n\n```\nwrong\n```" in text
    assert f"<details><summary>reproducer</summary>\n\n```python\n{PROGRAM.rstrip()}\n```\n\n</details>" in text


@pytest.mark.parametrize("name", NASTY)
def test_no_text_breaks_out_of_the_markdown(name: str) -> None:
    """After rendering, a message is code, a name stays in its cell, and neither becomes an element."""
    text = NASTY[name]
    example = run(
        result("a/b", model.FAILED, message=text, reproducer=text),
        result("c/d", model.BLOCKED, blocked_by=text),
        subject=subject(description=text),
        next_kernels=(NextKernel("exp", (text,)),),
        stale=(text,),
    )
    page = _html(to_markdown(example).replace("<details>", "").replace("<summary>", "").replace("\x00", "\ufffd"))
    for tag in ("script", "img", "b", "a ", "strong>bold"):
        assert f"<{tag}" not in page
    rows = re.findall(r"<tr>.*?</tr>", page.split("What blocks other cases")[1].split("</table>")[0], re.DOTALL)
    assert [row.count("<td") for row in rows[1:]] == [2]


def test_pieces_of_markdown_mean_what_they_say() -> None:
    """Text, code, blocks and tables are correct also with the characters that would end them."""
    assert escape("a|b\n*c* <d>") == "a\\|b \\*c\\* \\<d\\>"
    assert code("a|b") == "`a\\|b`"
    assert code("a ``b`` c") == "``` a ``b`` c ```"
    assert block("x\n````\ny\n") == "`````\nx\n````\ny\n`````"
    assert block("z" * 5000).endswith("z\n… 1000 more characters\n```")
    assert table(["a", "b"], [[1, 2]], right=1) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"
    assert folded("t", "x") == "<details><summary>t</summary>\n\nx\n\n</details>"


def test_the_markdown_lists_the_largest_errors_and_folds_the_whole_table() -> None:
    """NaN is the largest error; the full table is a matrix of operators and dtypes."""
    text = to_markdown(nasty_run(), errors=2)
    first = text.split("### Largest errors")[1].split("\n")
    assert first[4].startswith("| `script` | `float32` | nan | `script/value/float32/contiguous` |")
    assert first[5].startswith("| `quotes` | `float32` | inf |")
    assert "<details><summary>all 7 pairs of operator and dtype</summary>" in text
    assert "| `markup` |" not in text
    assert "| `unicode` | 1e+300 |" in text


def test_the_markdown_says_what_to_do_next() -> None:
    """The sections are kernels, blockers, routes and stale patterns; an empty section is omitted."""
    text = to_markdown(nasty_run())
    assert (
        "### Kernels to write next\n\n"
        "| kernel | state | dtypes | gain | operators |\n| --- | --- | --- | --- | --- |\n"
        "| `matmul` | missing | `float16`, `float32` | 2 operators would run on the device | `linear`, `bmm` |\n"
        "| `exp` | broken | `float32` | unlocks 1 | `softmax` |\n"
        "| `sum` | declines | `int8` | 1 operator would run on the device | `mean` |\n"
    ) in text
    assert "### Kernels that declined calls, with the first reason\n\n- erf in float64: TypeError: both" in text
    assert "| `device/copy/float32` | 1 |" in text
    assert "| fallback | 2 | 1 |" in text
    assert "- `softmax/gone/*`" in text
    assert not re.findall("### (Kernels|What|Expected|Largest|[0-9]+ failures)", to_markdown(green_run()))


def test_the_markdown_of_a_large_run_is_small_enough_for_a_job_summary() -> None:
    """GitHub refuses more than 1 MiB."""
    example = large_run(600)
    assert len(example.results) == 14_400
    assert len(to_markdown(example).encode()) < 2**18


def test_many_blockers_are_cut() -> None:
    """A device on which no operator works does not fill the page."""
    example = run(*(result(f"op{at}/value", model.BLOCKED, blocked_by=f"b{at}") for at in range(30)))
    assert "… and 10 more." in to_markdown(example)


# Terminal


def test_the_terminal_ends_with_the_outcome() -> None:
    """The last line, which stays visible, has device, level, counts and time."""
    assert _printed(green_run()).strip().splitlines()[-1] == (
        "acme:0: level 3 (all dtypes and properties)  4 passed in 75 s"
    )
    assert (
        _printed(green_run(), width=200)
        .strip()
        .splitlines()[-2]
        .startswith(
            "ACME X1 <rev 2> — candelabra-acme 1.0 on candelabra 0.1.0, suite 0.1.0, held against host:0; Python 3.11.9"
        )
    )
    assert "acme:0: level none, level 3 is required" in _printed(nasty_run())
    assert "acme:0: level none, level 3 is required  no case in 75 s" in _printed(run())


def test_the_terminal_shows_the_first_failures_with_their_programs() -> None:
    """Message and program are below the id; the number of the others follows."""
    text = _printed(nasty_run(), failures=1)
    assert "crashed device/copy/float32  unsupported\n  device: 1 case of copy in float32, blocks 1 case\n" in text
    assert "  signal 11\n" in text
    assert "… and 13 more failures of 13 other causes" in text


def test_the_terminal_does_not_wrap_or_cut_a_program() -> None:
    """A program copied from the terminal runs."""
    line = "x = cd.tensor([" + ", ".join(["1.0"] * 60) + "])"
    assert f"  {line}\n" in _printed(run(result("a/b", model.FAILED, reproducer=line)), width=60)


def test_a_long_program_is_a_file(tmp_path: Path) -> None:
    """The terminal says where the file is; a folder that is named gets the short programs too."""
    long = "x = 1\n" * 200
    example = run(
        result("a/b/float32", model.FAILED, message="one", reproducer=long),
        result("c/d", model.FAILED, reproducer="y = [" + "1.0, " * 900 + "]\n"),
        result("e/f", model.FAILED, reproducer="z = 1\n"),
    )
    text = _printed(example, width=300)
    path = Path(re.findall(r"reproducer of 200 lines and 1,200 characters: (\S+a__b__float32.py)", text)[0])
    assert path.read_text() == long
    assert (path.parent / "c__d.py").is_file()
    assert not (path.parent / "e__f.py").exists()
    assert "x = 1" not in text
    path.unlink()
    (path.parent / "c__d.py").unlink()
    first, _, last = example.results
    assert on_a_screen(first) == f"200 lines and 1,200 characters: {path}"
    assert path.read_text() == long
    path.unlink()
    assert on_a_screen(last) == "z = 1\n"
    text = _printed(example, width=300, folder=tmp_path / "new")
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["a__b__float32.py", "c__d.py", "e__f.py"]
    assert f"reproducer (also in {tmp_path / 'new' / 'e__f.py'}):\n  z = 1" in text
    console = Console(file=StringIO(), width=100)
    console.print(summary(example))
    assert "1,200 characters: the JSON and HTML reports" in console.file.getvalue()  # type: ignore[attr-defined]


def test_texts_are_no_markup_on_the_terminal() -> None:
    """A message in square brackets is shown unchanged."""
    example = run(result("a/b", model.FAILED, message="[bold red]x[/] [/wrong]"), stale=("[red]",))
    assert "[bold red]x[/] [/wrong]" in _printed(example)
    assert "[red]" in _printed(example)


def test_the_terminal_says_what_to_do_next() -> None:
    """The sections are kernels with the operators they unlock, blockers, routes, largest errors and stale patterns."""
    text = _printed(nasty_run())
    assert "matmul (missing in float16, float32): 2 operators would run on the device (linear, bmm)" in text
    assert "exp (broken in float32): unlocks 1 (softmax)" in text
    assert "sum (declines in int8): 1 operator would run on the device (mean)" in text
    assert f"erf in float64: TypeError: {NASTY['quotes']}" in text
    assert "crashed device: 1 case of copy in float32, blocks 1 case: signal 11" in text
    assert "fallback: 2 cases, 1 operator" in text
    assert "nan ULP  script/value/float32/contiguous" in text
    assert "softmax/gone/*" in text
    many = (NextKernel("exp", tuple("abcdef")), NextKernel("sum", ()))
    text = _printed(run(next_kernels=many))
    assert "exp (missing): 6 operators would run on the device (a, b, c, d, e, …)" in text
    assert "sum (missing): unlocks 0\n" in text


def test_errors_of_python_are_first_among_the_declined_calls() -> None:
    """A mistake in a kernel is not among those that are cut, and the summary says where all are."""
    reasons = [f"op{at:02} in bool: InvalidArgumentError: bool is not allowed" for at in range(12)]
    mistakes = ["where in int8: TypeError: no attribute", "xlogy in int8: UnboundLocalError: x", "zeta: KeyError: 'x'"]
    limits = [
        "abs in bool: NotImplementedError: bool",
        "ops in int8: int: is no error",
        "sum in bool: RuntimeError: no",
    ]
    example = run(result("where/value/int8", declined=(*reasons, *limits, *mistakes)))
    assert declined(example.results)[:4] == [*mistakes, limits[0]]
    text = _printed(example, width=200)
    assert text.index("where in int8: TypeError") < text.index("zeta: KeyError") < text.index("abs in bool")
    assert "… and 8 more; all are in the HTML report (--html), and in the JSON report for each case" in text
    assert "… and 8 more: see the HTML or the JSON report" in to_markdown(example, failures=10)


def test_every_summary_asks_whether_the_device_flushes_subnormal_numbers() -> None:
    """Three failures with the remark give one line; two, or expected failures, do not."""
    words = f"1 of 7 elements wrong; worst: got 0.0, expected 1e-45; {model.FLUSHED}, for (x)"
    failed = [result(f"{name}/special/float32", model.FAILED, message=words) for name in ("add", "div", "gt")]
    hint = "3 cases would pass if numbers below the smallest normal one were 0: if the device takes and returns zeros"
    for text in (to_markdown(run(*failed)), _printed(run(*failed), width=300), report.to_html(run(*failed))):
        assert "a capability to check" in text.lower()
        assert hint in text
        assert "declare subnormals=False in its Capabilities" in text
    listed = replace(failed[2], verdict=model.EXPECTED)
    assert "capability" not in _printed(run(*failed[:2], listed), width=300) + to_markdown(run(*failed[:2], listed))


# What keeps a device from a level


def test_every_summary_says_why_a_level_is_not_reached() -> None:
    """Unsupported cases are named with their reason, as failures are, and the group that blocks most is first."""
    example = run(
        result("add/value", level=0),
        result("exp/value/float16", model.UNSUPPORTED, message="operator 'exp' has no kernel on 'acme:0'"),
        result("exp/value/float32", model.FAILED, message="3 of 7 elements wrong, for (x)"),
        result("sin/value/float32", model.FAILED, message="1 of 7 elements wrong, for (x)"),
        result("softmax/value/float32", model.BLOCKED, blocked_by="sin/value/float32"),
        result("gelu/value/float32", model.BLOCKED, blocked_by="softmax/value/float32"),
        result("later/value", model.FAILED, 2),
        result("lost/value", model.BLOCKED, blocked_by="gone/value"),
        options={"level": 2, "required": 1},
    )
    lines = tally.obstacles(example)
    assert lines == [
        "failed sin: 1 case of value in float32, blocks 2 cases: 1 of 7 elements wrong, for (x)",
        "unsupported exp: 1 case of value in float16: operator 'exp' has no kernel on 'acme:0'",
        "failed exp: 1 case of value in float32: 3 of 7 elements wrong, for (x)",
        "blocked by gone/value: 1 case",
    ]
    for text in (to_markdown(example), _printed(example, width=200), report.to_html(example)):
        assert "hy level 1 is not reached" in text
        assert "blocks 2 cases" in text
    assert (example.level, example.required, example.conforms) == (0, 1, False)


def test_failures_of_one_cause_are_one_group() -> None:
    """Messages that differ in numbers, dtypes and samples form one group; other operators and other words are not."""
    example = run(
        result(
            "exp/value/float32", model.FAILED, message="3 of 7 elements wrong; worst at [1, 2]: got nan, expected 1.5"
        ),
        result("exp/value/float16", model.FAILED, message="17 of 91 elements wrong; worst: got -2e-07, expected inf"),
        result("exp/out/float16", model.FAILED, message="TypeError: no float16, for (float16[3])"),
        result("exp/out/int8", model.FAILED, message="TypeError: no int8, for (int8[3, 4])"),
        result(
            "sin/value/float32", model.FAILED, message="3 of 7 elements wrong; worst at [1, 2]: got 1.0, expected 1.5"
        ),
        result(
            "exp/value/int8", model.CRASHED, message="3 of 7 elements wrong; worst at [1, 2]: got 1.0, expected 1.5"
        ),
    )
    assert [tally.group_title(group) for group in grouped(example.results)] == [
        "exp: 2 cases of out in int8, float16",
        "exp: 2 cases of value in float16, float32",
        "exp: 1 case of value in int8",
        "sin: 1 case of value in float32",
    ]
    assert "and 1 more failure of 1 other cause" in _printed(example, failures=3)
    assert "exp: 2 cases of value in float16, float32" in _printed(example)


def test_a_device_may_fail_above_the_required_level() -> None:
    """The required level decides; by default it is the highest of the run."""
    held = (*green_run().results[:3], result("add/value/float16", model.FAILED, 3))
    assert run(*held, options={"required": 2}).conforms
    assert not run(*held).conforms
    assert run(*held[:2], options={"level": 1}).conforms
    assert run(*held[:2], options={"level": "high"}).required == 3


def test_selected_cases_claim_no_level() -> None:
    """Neither "level none" nor a level is claimed, whether the cases pass or not."""
    good = run(result("exp/value"), options={"operators": ["exp"]})
    bad = run(result("exp/value"), result("exp/out", model.FAILED), options={"patterns": ["exp/*"]})
    for example, words in ((good, "all selected cases pass"), (bad, "1 of 2 selected cases not passed")):
        for text in (to_markdown(example), _printed(example), report.to_html(example)):
            assert words in text
            assert not re.search(r"level (none|\d \()|no level yet", text)
    part = replace(good, remaining={3: 2})
    assert "acme:0: not all selected cases were run" in _printed(part)
    assert good.conforms
    assert not part.conforms
    assert not bad.conforms
    assert "what does not pass" in _printed(bad)
    assert 'aria-label="candelabra on acme: 2 selected cases, failing"' in to_badge(bad)
    difference = report.compare(run(result("exp/value", level=0), result("exp/out")), good)
    assert not difference.regressed


# Badge


@pytest.mark.parametrize(
    ("example", "label"),
    [
        (green_run(), "candelabra on acme: level 3"),
        (replace(green_run(), results=green_run().results[:1]), "candelabra on acme: level 0"),
        (run(), "candelabra on acme: no level yet"),
        (nasty_run(), "candelabra on acme: no level yet, failing"),
        (replace(green_run(), subject=subject(device="<a&'b'>")), "candelabra on <a&'b'>: level 3"),
    ],
)
def test_the_badge_says_device_and_level(example: Run, label: str) -> None:
    """The badge has a text for screen readers, and loads nothing from elsewhere."""
    root = ElementTree.fromstring(to_badge(example))
    assert root.get("aria-label") == label
    assert "".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")) == label.replace(
        ": ", "", 1
    )
    assert set(re.findall("[a-z]+://[^\"']+", to_badge(example))) == {"http://www.w3.org/2000/svg"}


def _contrast(colour: str) -> float:
    """Return the contrast to white, as WCAG 2.2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 1.05 / (sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear)) + 0.05)


def test_every_badge_can_be_read() -> None:
    """White on each colour has a contrast of at least 4.5, and each level has its own colour."""
    levels = [replace(green_run(), results=green_run().results[:count]) for count in range(5)]
    pages = [to_badge(example) for example in (*levels, nasty_run())]
    colours = [set(re.findall('fill="(#[0-9a-f]{6})"', page)) for page in pages]
    assert min(_contrast(colour) for found in colours for colour in found) >= 4.5
    assert len({frozenset(found) for found in colours}) == len(pages)


# The package and its counts


def test_every_public_name_is_there() -> None:
    """The package has every name of ``__all__``; the module `diff` stays importable."""
    assert all(callable(getattr(report, name)) or name == "SCHEMA" for name in report.__all__)
    assert callable(report.diff.main)


def test_the_worst_verdict_is_the_one_that_matters_most() -> None:
    """Passed takes precedence over skipped; every other verdict takes precedence over both."""
    assert tally.worst([model.SKIPPED, model.PASSED]) == model.PASSED
    assert tally.worst([model.PASSED, model.UNSUPPORTED]) == model.UNSUPPORTED
    assert tally.worst(model.VERDICTS) == model.CRASHED
    assert tally.worst([]) == ""
    assert set(tally.WORST_FIRST) == set(model.VERDICTS)


def test_dtypes_are_sorted_as_people_list_them() -> None:
    """Dtypes are sorted by kind, then by width; a vendor's own dtype is last."""
    sortable = ["complex64", "float32", "bfloat16", "acme8", "int8", "bool", "float16", "uint8", "int16", ""]
    in_order = ["bool", "int8", "int16", "uint8", "float16", "bfloat16", "float32", "complex64", "", "acme8"]
    assert sorted(sortable, key=tally.dtype_order) == in_order


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (12.3, "12 s"), (200, "3 min 20 s"), (3599.9, "60 min 0 s")]
)
def test_durations_are_said_as_people_say_them(seconds: float, text: str) -> None:
    """Durations are in seconds, or in minutes and seconds."""
    assert tally.seconds_text(seconds) == text


def test_an_unknown_route_is_still_counted() -> None:
    """A report of a later suite may have another route."""
    assert tally.routes(run(result("a/b", route="tunnel"), result("a/c", route="native"))) == {
        "native": (1, 1),
        "tunnel": (1, 1),
    }
