"""No two classes share a name, so that a search finds the class that is meant."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for pattern in ("*/src", "backends/*/src") for path in ROOT.glob(pattern))
STAND_IN = "candelabra._absent_"
"""How the modules begin that stand for a public module of a distribution that is not installed."""


@cache
def modules() -> dict[str, str]:
    """Return the text of every module of the distributions, by its import path."""
    found = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def classes(text: str) -> list[str]:
    """Return the names of a module's classes, also of those inside functions and classes."""
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]


@cache
def modules_of_doubles() -> dict[str, list[str]]:
    """Return the names that several classes have, with their modules. Only files with such a name are parsed."""
    lines = {module: set(re.findall(r"^\s*class (\w+)", text, re.MULTILINE)) for module, text in modules().items()}
    several = {name for name, count in Counter(chain(*lines.values())).items() if count > 1}
    found: dict[str, list[str]] = defaultdict(list)
    for module, text in modules().items():
        for name in set(classes(text)) & several if lines[module] & several else ():
            found[name].append(module)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def exporters(name: str) -> Iterator[str]:
    """Yield the public modules whose ``__all__`` has a name."""
    for module, text in modules().items():
        public = "__all__" in text and name in text and not any(part.startswith("_") for part in module.split("."))
        if public and name in getattr(importlib.import_module(module), "__all__", ()):
            yield module


def may_be_double(name: str, module: str) -> bool:
    """Return whether a class is public, so that its module is part of its name, or stands for one that is public.

    ``nn.Parameter`` is PyTorch's name and ``library.Parameter`` the one of a signature's parts: users write the module.
    """
    stood_for = f"candelabra.{module.removeprefix(STAND_IN)}"
    if module.startswith(STAND_IN) and name in getattr(importlib.import_module(stood_for), "__all__", ()):
        return True
    own = getattr(importlib.import_module(module), name, None)
    return any(getattr(importlib.import_module(public), name) is own for public in exporters(name))


def test_internal_classes_have_names_of_their_own() -> None:
    """If two classes share a name, both are public: no internal class has the name of another class."""
    assert {
        f"{module}.{name}"
        for name, where in modules_of_doubles().items()
        for module in where
        if not may_be_double(name, module)
    } == set()


def test_every_distribution_is_searched() -> None:
    """The search covers all sources, and finds classes inside functions."""
    assert {module.partition(".")[0] for module in modules()} >= {"candelabra", "candelabra_clike"}
    assert len(SOURCES) == len(list(ROOT.glob("*/src"))) + len(list(ROOT.glob("backends/*/src")))
    assert classes("def f():\n    class Inner: ...\nclass Outer: ...") == ["Outer", "Inner"]
    assert "Identity" in modules_of_doubles()
