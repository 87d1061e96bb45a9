"""Functions in C that kernels call: the files of this folder, in the words of :mod:`candelabra_clike.dialect`.

A function starts with ``FUNCTION`` at the beginning of a line and ends with ``}`` at the beginning of a line. Tables
start with ``CONSTANT``, macros with ``#define``, and end with the last line that follows without a blank line between.
What a kernel's body names is put before it, and what that names, and so on: nothing is listed anywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

_DEFINITION = re.compile(
    r"^(?:FUNCTION\s+\w+\s+(?P<function>\w+)\s*\(.*?^\}|CONSTANT\s+\w+\s+(?P<table>\w+)\[.*?;$"
    r"|#define\s+(?P<macro>\w+).*?(?<!\\)$)",
    re.MULTILINE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]\w*")


@lru_cache(1)
def definitions() -> dict[str, str]:
    """name → text of everything that the library defines. Raises ``TypeError`` for a name that is defined twice."""
    found: dict[str, str] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".c"):
            continue
        for match in _DEFINITION.finditer(file.read_text(encoding="utf-8")):
            name = match["function"] or match["table"] or match["macro"]
            if name in found:
                raise TypeError(f"library: {name!r} is defined twice, the second time in {file.name}")
            found[name] = match[0]
    return found


@lru_cache(4096)
def needed(text: str) -> str:
    """The definitions that ``text`` needs, each after those that it needs itself."""
    known, order = definitions(), {}  # type: dict[str, str], dict[str, None]

    def add(part: str) -> None:
        for word in _WORD.findall(part):
            if word in known and word not in order and word not in pending:
                pending.append(word)
                add(known[word])
                pending.remove(word)
                order[word] = None

    pending: list[str] = []
    add(text)
    return "".join(known[name] + "\n" for name in order)
