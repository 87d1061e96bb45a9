"""The summaries of a run: Markdown for continuous integration, text for the terminal, a badge."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest
from candelabra_conformance import model, report
from candelabra_conformance.model import Run
from candelabra_conformance.report import print_summary, tally, to_badge, to_markdown
from candelabra_conformance.report.markdown import block, code, escape, folded, table
from markdown_it import MarkdownIt
from rich.console import Console

from tests.conformance.example_runs import NASTY, PROGRAM, green_run, large_run, nasty_run, result, run, subject


def _printed(example: Run, width: int = 100, **limits: int) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    print_summary(example, console, **limits)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


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
    assert to_markdown(nasty_run()).startswith("## ❌ acme:0 does not conform: level none\n")


def test_every_summary_says_what_remains_to_be_run() -> None:
    """A level with remaining cases is not reached, and the summary says that the run is incomplete."""
    example = replace(green_run(), remaining={2: 1, 3: 1200})
    assert example.level == 1
    for text in (to_markdown(example), _printed(example), report.to_html(example)):
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
    assert "### 14 failures" in text
    assert text.index("`device/copy/float32`") < text.index("`control/value/float32/contiguous`")
    assert "… and 12 more: see the JSON or the HTML report." in text
    assert "softmax/failed" not in text.split("### What blocks")[0]
    assert "… and" not in to_markdown(nasty_run(), failures=14).split("### What blocks")[0]


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
        next_kernels=(("exp", (text,)),),
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
        "### Kernels to write next\n\n| kernel | unlocks | operators |\n| --- | --- | --- |\n| `matmul` | 2 |" in text
    )
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
    assert "acme:0: level none" in _printed(nasty_run())
    assert _printed(run()).strip().splitlines()[-1] == "acme:0: level none  no case in 75 s"


def test_the_terminal_shows_the_first_failures_with_their_programs() -> None:
    """Message and program are below the id; the number of the others follows."""
    text = _printed(nasty_run(), failures=1)
    assert "crashed device/copy/float32  unsupported\n  signal 11\n" in text
    assert "… and 13 more failures" in text


def test_the_terminal_does_not_wrap_or_cut_a_program() -> None:
    """A program copied from the terminal runs."""
    line = "x = cd.tensor([" + ", ".join(["1.0"] * 60) + "])"
    assert f"  {line}\n" in _printed(run(result("a/b", model.FAILED, reproducer=line)), width=60)


def test_texts_are_no_markup_on_the_terminal() -> None:
    """A message in square brackets is shown unchanged."""
    example = run(result("a/b", model.FAILED, message="[bold red]x[/] [/wrong]"), stale=("[red]",))
    assert "[bold red]x[/] [/wrong]" in _printed(example)
    assert "[red]" in _printed(example)


def test_the_terminal_says_what_to_do_next() -> None:
    """The sections are kernels with the operators they unlock, blockers, routes, largest errors and stale patterns."""
    text = _printed(nasty_run())
    assert "matmul: unlocks 2 (linear, bmm)" in text
    assert "device/copy/float32: 1 case" in text
    assert "fallback: 2 cases, 1 operator" in text
    assert "nan ULP  script/value/float32/contiguous" in text
    assert "softmax/gone/*" in text
    assert "exp: unlocks 6 (a, b, c, d, e, …)" in _printed(run(next_kernels=(("exp", tuple("abcdef")),)))


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
