"""Compile the source text of generated functions.

The same text serves many keys, with other names bound into it, so code objects are cached by their text.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count
from types import CodeType
from weakref import finalize

from candelabra._annotations import Any, Final

_code: Final[dict[str, CodeType]] = {}
_numbers: Final = count()


def build(name: str, parameters: str, body: Sequence[str], names: dict[str, Any], where: str) -> Callable[..., Any]:
    """Compile ``def name(parameters): body`` with ``names`` as its globals.

    The text is registered with ``linecache``, so that tracebacks and debuggers show generated lines.
    """
    text = _text(name, parameters, body)
    code = _code.get(text)
    if code is None:
        file = f"<candelabra {where} {len(_code)}>"
        code = _code[text] = compile(text, file, "exec")
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(names)
    exec(code, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def build_once(
    name: str, parameters: str, body: Sequence[str], names: dict[str, Any], where: str
) -> Callable[..., Any]:
    """As :func:`build`, for text that no other function has: nothing is kept when the function is discarded."""
    text = _text(name, parameters, body)
    file = f"<candelabra {where} {next(_numbers)} of a program>"
    namespace = dict(names)
    exec(compile(text, file, "exec"), namespace)
    function: Callable[..., Any] = namespace.pop(name)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    finalize(function, linecache.cache.pop, file, None)
    return function


def source_of(function: Any) -> str:
    """Return the text of a generated function; an empty one for others."""
    code = getattr(function, "__code__", None)
    file = "" if code is None else code.co_filename
    return "".join(linecache.getlines(file)) if file.startswith("<candelabra") else ""


def _text(name: str, parameters: str, body: Sequence[str]) -> str:
    return f"def {name}({parameters}):\n" + "\n".join("    " + line for line in body) + "\n"


def indent(lines: Sequence[str]) -> list[str]:
    """Indent lines by one level."""
    return ["    " + line for line in lines]
