"""Functions in C that kernels call: the files of this folder, in the words of :mod:`candelabra_clike.dialect`.

A function starts with ``FUNCTION`` at the beginning of a line and ends with ``}`` at the beginning of a line. Tables
start with ``CONSTANT``, macros with ``#define``, and end with the last line that follows without a blank line between.
What a kernel's body names is put before it, and what that names, and so on: nothing is listed anywhere.

A name that ends in ``_T`` is defined twice, for ``f32`` and for ``f64``. In such a text ``T`` is the type, ``U`` the
unsigned integer of its size; ``_T``, ``_W`` and ``_U`` at the end of a name become ``_f32``, ``_F32`` and ``_U32``,
decimal numbers are of the type, and ``PICK_T(a, b)`` is ``a`` in the first, ``b`` in the second (neither with a bracket
or a comma in it). A name that ends in ``_Z`` is one for ``c64`` and one for ``c128``, in which ``Z`` and ``_Z`` are the
complex type, ``PAIR_Z(re, im)`` makes a number of it, and ``T`` is the type of the parts.
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
_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_DECIMAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")
_CHOICE = re.compile(r"PICK_T\(([^,()]+),\s*([^,()]+)\)")
TWICE = {"_T": (("_f32", "f32"), ("_f64", "f64")), "_Z": (("_c64", "f32"), ("_c128", "f64"))}
"""The ends of names that are defined twice: what stands there instead, and the type of real numbers."""


def typed(text: str, value: str) -> str:
    """The definition of a name that ends in ``_T`` or ``_Z``, for one value type."""
    first = value == "f32"
    text = _CHOICE.sub(r"\1" if first else r"\2", _COMMENT.sub("", text))
    if first:
        text = _DECIMAL.sub(r"\g<0>f", text)
    bits, pair = value[1:], f"c{2 * int(value[1:])}"
    words = {
        r"\bT\b": value, r"\bU\b": "u" + bits, r"_T\b": "_" + value, r"_W\b": "_F" + bits, r"_U\b": "_U" + bits,
        r"\bPAIR_Z\b": pair.upper(), r"\bZ\b": pair, r"_Z\b": "_" + pair,
    }  # fmt: skip
    for word, meaning in words.items():
        text = re.sub(word, meaning, text)
    return text


@lru_cache(1)
def definitions() -> dict[str, str]:
    """name → text of everything that the library defines. Raises ``TypeError`` for a name that is defined twice."""
    found: dict[str, str] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".c"):
            continue
        for match in _DEFINITION.finditer(file.read_text(encoding="utf-8")):
            name = match["function"] or match["table"] or match["macro"]
            stem, end = name[:-2], name[-2:]
            texts = {stem + e: typed(match[0], t) for e, t in TWICE[end]} if end in TWICE else {name: match[0]}
            for made in texts:
                if made in found:
                    raise TypeError(f"library: {made!r} is defined twice, the second time in {file.name}")
            found |= texts
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
