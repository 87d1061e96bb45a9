"""Search docstrings, comments, error texts and names for words to avoid. ``make lint`` runs it.

``words.toml`` lists the words, each with its replacement; ``docs/writing.md`` explains how we write. The checker also
reports two classes that share a name. It exits with status 1 if it finds anything.

Searched are docstrings, comments, the strings of raised exceptions, and the names of modules, classes, functions and
parameters; of C files, comments and the file's name; of Markdown, all text. Code in backquotes is skipped.

Usage: ``python tools/prose.py [FOLDER_OR_FILE ...]``, by default all folders in :data:`COVERED`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COVERED = (
    "README.md", "CONTRIBUTING.md", "backends", "benchmarks", "conformance", "core", "distributed", "docs", "examples",
    "nn", "tests", "tools",
)  # fmt: skip
"""The folders to check, as far as they have been rewritten. Add the next one here, until all are listed."""
EXCLUDED = (
    "core/src/candelabra/_index",
    "docs/notes",
    "docs/operators",
    "docs/reports",
)
"""Folders within them that are generated, or not rewritten yet."""
UNIQUE_CLASSES = ("backends",)
"""The folders within which no two classes share a name."""
REQUIRED_BY_PYTORCH = {"composed_transforms.py": {"parts"}}
"""Names of parameters and attributes that PyTorch's programs use, by file."""
_CODE = re.compile(r"``.*?``|:\w+:`[^`]*`|`[^`]*`", re.DOTALL)
_FENCED_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"#\s*(fmt:|noqa|type:|--)")


class Hit(NamedTuple):
    """A word in a file, and its replacement."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.word!r} -> {self.instead}"


@dataclass(frozen=True)
class WordList:
    """The words to search for: patterns of prose, words within identifiers, and whole identifiers."""

    prose: Sequence[tuple[re.Pattern[str], str]]
    words: dict[str, str]
    identifiers: dict[str, str]

    @classmethod
    def load(cls, path: Path) -> WordList:
        """Read the list from a TOML file."""
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        prose = [(compiled(entry["pattern"]), entry["instead"]) for entry in table["prose"]]
        words = {entry["word"]: entry["instead"] for entry in table["word"]}
        return cls(prose, words, {entry["name"]: entry["instead"] for entry in table["identifier"]})

    def in_prose(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Yield (line within the text, word, advice) for every hit in prose. Code in backquotes is skipped."""
        text = without_code(_CODE, text)
        for pattern, instead in self.prose:
            for match in pattern.finditer(text):
                yield text.count("\n", 0, match.start()), " ".join(match[0].split()), instead

    def in_name(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield (word, advice) for every hit in an identifier."""
        plain = name.strip("_")
        if plain.lower() in self.identifiers:
            yield name, self.identifiers[plain.lower()]
        for word in words_of(plain):
            if word in self.words:
                yield name, self.words[word]


def without_code(code: re.Pattern[str], text: str) -> str:
    """Replace code by bars, so that the other text keeps its lines."""
    return code.sub(lambda match: re.sub(r"[^\n]", "|", match[0]), text)


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of ``words.toml``: whole words in any case; a space matches any white space."""
    return re.compile(rf"(?<!\w)(?:{pattern.replace(' ', chr(92) + 's+')})(?!\w)", re.IGNORECASE)


def words_of(name: str) -> list[str]:
    """Return the lower-case words of an identifier in snake_case or CamelCase."""
    return [word.lower() for word in re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).split("_") if word]


def check_python(path: Path, source: str, words: WordList) -> Iterator[Hit]:
    """Yield the hits in a Python file."""
    tree = ast.parse(source)
    for word, instead in words.in_name(path.stem):
        yield Hit(path, 1, word, instead)
    for node in ast.walk(tree):
        for name, line in names_of(node):
            if name in REQUIRED_BY_PYTORCH.get(path.name, ()):
                continue
            for word, instead in words.in_name(name):
                yield Hit(path, line, word, instead)
        for text, line in texts_of(node):
            for offset, word, instead in words.in_prose(text):
                yield Hit(path, line + offset, word, instead)
    for text, line in comments_of(source):
        for offset, word, instead in words.in_prose(text):
            yield Hit(path, line + offset, word, instead)


def names_of(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) of the classes, functions and parameters that a node defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, node.lineno
    if isinstance(node, ast.arg):
        yield node.arg, node.lineno


def texts_of(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (text, line) of a docstring, also of an attribute, and of the strings of a raised exception."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        yield node.value.value, node.lineno
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for argument in node.exc.args:
            for part in ast.walk(argument):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value, part.lineno


def comments_of(source: str) -> Iterator[tuple[str, int]]:
    """Yield (text, line) of every block of comments; directives and separators are skipped."""
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line, alone = token.start[0], not token.line[: token.start[1]].strip()
        if block and alone and line == last + 1:
            block.append(token.string[1:])
        else:
            if block:
                yield "\n".join(block), start
            block, start = [token.string[1:]], line
        last = line
    if block:
        yield "\n".join(block), start


def check_c(path: Path, source: str, words: WordList) -> Iterator[Hit]:
    """Yield the hits in the comments of a C file, and in its name."""
    for word, instead in words.in_name(path.stem):
        yield Hit(path, 1, word, instead)
    for match in _C_COMMENT.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        for offset, word, instead in words.in_prose(match[0]):
            yield Hit(path, line + offset, word, instead)


def check_markdown(path: Path, source: str, words: WordList) -> Iterator[Hit]:
    """Yield the hits in a Markdown file."""
    for offset, word, instead in words.in_prose(without_code(_FENCED_CODE, source)):
        yield Hit(path, offset + 1, word, instead)


def duplicate_classes(paths: Sequence[Path]) -> Iterator[Hit]:
    """Yield a hit for every class whose name an earlier class has."""
    first: dict[str, str] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                if node.name in first:
                    yield Hit(
                        path, node.lineno, node.name, f"another name: the class at {first[node.name]} has this one"
                    )
                first.setdefault(node.name, f"{path.name}:{node.lineno}")


def files_in(root: Path) -> list[Path]:
    """Return the files in a folder that can be checked, or the file itself."""
    if root.is_file():
        return [root]
    excluded = [ROOT / folder for folder in EXCLUDED]
    paths = (path for path in root.rglob("*") if path.suffix in CHECKS)
    return sorted(path for path in paths if not any(path.is_relative_to(folder) for folder in excluded))


def check(root: Path, words: WordList) -> list[Hit]:
    """Return the hits of the word list in a folder or file, in order."""
    hits: list[Hit] = []
    for path in files_in(root):
        hits += CHECKS[path.suffix](path, path.read_text(encoding="utf-8"), words)
    return sorted(hits)


def main(arguments: Sequence[str]) -> int:
    """Print all hits, and return the exit status."""
    roots = [Path(argument).resolve() for argument in arguments] or [ROOT / folder for folder in COVERED]
    words = WordList.load(ROOT / "tools" / "words.toml")
    hits = [hit for root in roots for hit in check(root, words)]
    for root in roots:
        if root in (ROOT / folder for folder in UNIQUE_CLASSES):
            hits += duplicate_classes([path for path in files_in(root) if path.suffix == ".py"])
    for hit in hits:
        print(hit)
    if hits:
        print(f"{len(hits)} to replace. docs/writing.md explains how we write; tools/words.toml is the list.")
    return 1 if hits else 0


CHECKS = {".py": check_python, ".c": check_c, ".md": check_markdown}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
