"""The checker of prose and names, with the list of words in the repository."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import prose  # noqa: E402 - after the path is set

TABLE: dict[str, list[dict[str, str]]] = tomllib.loads((ROOT / "tools/words.toml").read_text())
WORDS = prose.WordList.load(ROOT / "tools/words.toml")


def hits(folder: Path, text: str, name: str = "module.py") -> list[tuple[int, str]]:
    """Return the (line, word) of every hit in a file with this text."""
    (folder / name).write_text(text)
    return [(hit.line, hit.word) for hit in prose.check(folder / name, WORDS)]


@pytest.mark.parametrize("entry", TABLE["prose"], ids=lambda entry: entry["example"])
def test_every_pattern_matches_its_example(entry: dict[str, str]) -> None:
    """A pattern of the list finds the phrase that it was written for."""
    assert prose.compiled(entry["pattern"]).search(entry["example"])


@pytest.mark.parametrize("entry", [*TABLE["word"], *TABLE["identifier"]], ids=lambda entry: next(iter(entry.values())))
def test_every_word_is_found_in_names(tmp_path: Path, entry: dict[str, str]) -> None:
    """A word of the list is found as a function's name, a word also within a longer one, a whole name only alone."""
    name, alone = entry.get("word") or entry["name"], "name" in entry
    assert hits(tmp_path, f"def _{name}(): ...\n") == [(1, f"_{name}")]
    assert bool(hits(tmp_path, f"def {name}_count(): ...\n")) != alone


def test_the_list_has_no_entry_twice() -> None:
    """Each word has one piece of advice."""
    for kind, key in (("prose", "pattern"), ("word", "word"), ("identifier", "name")):
        entries = [entry[key] for entry in TABLE[kind]]
        assert sorted(set(entries)) == sorted(entries)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Nobody knows."""\n', 1),
        ('"""A summary.\n\nThen nobody\nknows."""\n', 3),
        ('class A:\n    """Nobody knows."""\n', 2),
        ('def f():\n    """Nobody knows."""\n', 2),
        ('LIMIT = 3\n"""Nobody knows."""\n', 2),
        ("x = 3  # nobody knows\n", 1),
        ("x = 3\n\n# It is 3.\n# Nobody knows.\n", 4),
        ('raise ValueError("nobody knows")\n', 1),
        ('raise ValueError(\n    f"{x} is what nobody knows"\n)\n', 2),
    ],
)
def test_docstrings_comments_and_errors_are_searched(tmp_path: Path, text: str, line: int) -> None:
    """A hit is reported with the line of the word, in whatever case it is."""
    assert [(number, word.lower()) for number, word in hits(tmp_path, text)] == [(line, "nobody")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("class TurnedArray: ...\n", "TurnedArray"),
        ("def is_turned(): ...\n", "is_turned"),
        ("async def turned(): ...\n", "turned"),
        ("def f(*, turned=0): ...\n", "turned"),
        ("def f(*turned): ...\n", "turned"),
        ("f = lambda turned: 0\n", "turned"),
    ],
)
def test_names_are_searched(tmp_path: Path, text: str, name: str) -> None:
    """Classes, functions and parameters of every kind are searched for listed words."""
    assert hits(tmp_path, text) == [(1, name)]


def test_the_name_of_a_file_is_searched(tmp_path: Path) -> None:
    """A module's name, and that of a C file, is a name."""
    assert hits(tmp_path, "", "turning.py") == [(1, "turning")]
    assert hits(tmp_path, "", "turning.c") == [(1, "turning")]


@pytest.mark.parametrize(
    "text",
    [
        '"""Return ``nobody`` and :class:`Nobody` and `nobody`."""\n',
        'x = "nobody"\n',
        "x = 3  # noqa: nobody\n",
        '"""A nobodyish word, and returned, spreadsheet."""\n',
        "def returned(returned_values): ...\n",
        "nobody = turned = 3\n",
    ],
)
def test_code_and_other_words_are_not_hits(tmp_path: Path, text: str) -> None:
    """Code in backquotes, plain strings, directives, local names and words that contain a listed one are allowed."""
    assert hits(tmp_path, text) == []


def test_a_phrase_is_found_across_lines(tmp_path: Path) -> None:
    """A line break within a phrase, also of a comment or an aligned docstring, is white space."""
    assert hits(tmp_path, '"""The same but\nfor one size."""\n') == [(1, "but for")]
    assert hits(tmp_path, "# The same but\n# for one size.\n") == [(1, "but for")]
    assert hits(tmp_path, "/* The same but\n   for one size. */\n", "kernel.c") == [(1, "but for")]


def test_comments_of_c_are_searched(tmp_path: Path) -> None:
    """C code itself is not."""
    text = "int nobody = 3;\n\n/* The first line.\n   Nobody knows. */\n"
    assert hits(tmp_path, text, "kernel.c") == [(4, "Nobody")]


def test_markdown_is_searched_except_for_code(tmp_path: Path) -> None:
    """Text is searched, fenced code and backquotes are not."""
    text = "# Title\n\n```python\nnobody()\n```\n\n`nobody` is told.\n"
    assert hits(tmp_path, text, "page.md") == [(7, "is told")]


def test_classes_that_share_a_name_are_reported(tmp_path: Path) -> None:
    """The later one is reported, with the place of the first."""
    (tmp_path / "a.py").write_text("\nclass Plan: ...\nclass Fold: ...\n")
    (tmp_path / "b.py").write_text("class Plan: ...\n")
    (hit,) = prose.duplicate_classes(prose.files_in(tmp_path))
    assert (hit.path.name, hit.line, hit.word) == ("b.py", 1, "Plan")
    assert "the class at a.py:2 has this one" in hit.instead


def test_the_command_reports_hits_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each hit is a line with path, line, word and advice; the exit status is 1. Without hits it is 0, silently."""
    (tmp_path / "module.py").write_text('"""A module."""\n\nx = 3  # but for one\n')
    assert prose.main([str(tmp_path)]) == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path}/module.py:3: 'but for' -> except"
    assert summary.startswith("1 to replace")
    (tmp_path / "module.py").write_text('"""A module."""\n')
    assert prose.main([str(tmp_path)]) == 0
    assert not capsys.readouterr().out


@pytest.mark.thorough
def test_covered_folders_have_no_hits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments all covered folders are checked, and for duplicate classes those that must have none."""
    duplicate_classes: Any = prose.duplicate_classes
    checked: list[set[Path]] = []
    monkeypatch.setattr(
        prose, "duplicate_classes", lambda paths: checked.append(set(paths)) or duplicate_classes(paths)
    )
    assert prose.main([]) == 0, capsys.readouterr().out
    assert checked == [set((ROOT / "backends").rglob("*.py"))]
