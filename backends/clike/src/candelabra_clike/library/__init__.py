"""Library functions of kernels in C: the ``.c`` files of this folder, in the vocabulary of
:mod:`candelabra_clike.dialect`.

A function starts with ``FUNCTION`` at the beginning of a line and ends with ``}`` at the beginning of a line. A table
starts with ``CONSTANT`` and ends with its semicolon. A macro starts with ``#define`` and ends with the first line that
is not continued. A program contains the definitions that the kernel's body refers to, and those that these refer to.

A name with the suffix ``_T`` is a template, which is instantiated for ``f32`` and ``f64``. In its text ``T`` is the
type and ``U`` the unsigned integer of its size. The suffixes ``_T``, ``_W`` and ``_U`` of names become ``_f32``,
``_F32`` and ``_U32``, decimal literals have the type, and ``PICK_T(a, b)`` is ``a`` for f32 and ``b`` for f64 (neither
may contain a bracket or a comma). A name with the suffix ``_Z`` is a template for ``c64`` and ``c128``, in which ``Z``
and ``_Z`` are the complex type, ``PAIR_Z(re, im)`` creates a number, and ``T`` is the type of the parts. A name with
the suffix ``_x8`` is a template, too, for ``_x8`` and ``_x16``: in its text every 8 after an x becomes 16.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_DEFINITION = re.compile(
    r"^(?:FUNCTION\s+\w+\s+(?P<function>\w+)\s*\(.*?^\}|CONSTANT\s+\w+\s+(?P<table>\w+)\[.*?;$"
    r"|#define\s+(?P<macro>\w+).*?(?<!\\)$)",
    re.MULTILINE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_DECIMAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")
_CHOICE = re.compile(r"PICK_T\(([^,()]+),\s*([^,()]+)\)")
_EIGHT = re.compile(r"(?<=[xX])8\b")
TEMPLATE_SUFFIXES = {"_T": (("_f32", "f32"), ("_f64", "f64")), "_Z": (("_c64", "f32"), ("_c128", "f64"))}
"""The suffixes of templates: the suffixes of the instances, and their real types."""


def instantiate(text: str, value: str) -> str:
    """Instantiate a template for a real type."""
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
    """Return the text of every definition of the library by name. Raises ``TypeError`` for a duplicate name."""
    result: dict[str, str] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".c"):
            continue
        for match in _DEFINITION.finditer(file.read_text(encoding="utf-8")):
            name = match["function"] or match["table"] or match["macro"]
            stem, end = name[:-2], name[-2:]
            if end in TEMPLATE_SUFFIXES:
                texts = {stem + e: instantiate(match[0], t) for e, t in TEMPLATE_SUFFIXES[end]}
            elif name.endswith("_x8"):
                texts = {name: match[0], name[:-1] + "16": _EIGHT.sub("16", match[0])}
            else:
                texts = {name: match[0]}
            for key in texts:
                if key in result:
                    raise TypeError(f"library: {key!r} is defined twice, the second time in {file.name}")
            result |= texts
    return result


_SIGNATURE = re.compile(r"FUNCTION\s+(\w+)\s+\w+\s*\((.*?)\)", re.DOTALL)


class FunctionSignature(NamedTuple):
    """The types of a library function."""

    result: str
    parameters: tuple[str, ...]


@lru_cache(None)
def signature(name: str) -> FunctionSignature | None:
    """Return the types of a function as its definition says, or None if the library has no function of that name."""
    match = _SIGNATURE.match(definitions().get(name, ""))
    if match is None:
        return None
    return FunctionSignature(match[1], tuple(" ".join(each.split()[:-1]) for each in match[2].split(",")))


@lru_cache(4096)
def needed(text: str) -> str:
    """Return the definitions that ``text`` refers to, directly or indirectly, in order of dependency."""
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
