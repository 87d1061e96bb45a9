"""Compile the source text of generated functions.

The same text serves many keys, with other names bound into it, so code objects are cached by their text.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from types import CodeType

from candelabra._annotations import Any, Final

_code: Final[dict[str, CodeType]] = {}


def build(name: str, parameters: str, body: Sequence[str], names: dict[str, Any], where: str) -> Callable[..., Any]:
    """Compile ``def name(parameters): body`` with ``names`` as its globals.

    The text is registered with ``linecache``, so that tracebacks and debuggers show generated lines.
    """
    text = f"def {name}({parameters}):\n" + "\n".join("    " + line for line in body) + "\n"
    code = _code.get(text)
    if code is None:
        file = f"<candelabra {where} {len(_code)}>"
        code = _code[text] = compile(text, file, "exec")
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = dict(names)
    exec(code, namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def indent(lines: Sequence[str]) -> list[str]:
    """Indent lines by one level."""
    return ["    " + line for line in lines]
