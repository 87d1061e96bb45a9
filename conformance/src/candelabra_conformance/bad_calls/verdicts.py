"""PyTorch's verdicts on the bad calls, in a text file that tests read without PyTorch.

One line for each function: its name, then for each parameter the calls by verdict: the letter of a verdict
(:data:`PEER`) and the codes of the calls that have it, as in ``add input:Tnso,.Ib other:…``. Calls that PyTorch does
not have are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

PEER: Final[dict[str, str]] = {
    ".": "returns", "T": "TypeError", "V": "ValueError", "R": "RuntimeError", "I": "IndexError",
    "N": "NotImplementedError", "O": "another exception", "X": "crashes or does not end", "-": "has no such call",
}  # fmt: skip
"""The verdicts. A call does not exist in PyTorch if the function is missing or the call that works raises."""

Verdicts = dict[str, str]
"""``{"add/other/s": "T"}``: the letter of a call, by its id."""


def read(path: Path) -> Verdicts:
    """Return the verdicts in a file."""
    verdicts: Verdicts = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, *parts = line.split()
        for part in parts:
            parameter, _, groups = part.partition(":")
            for group in groups.split(","):
                verdicts |= {f"{name}/{parameter}/{code}": group[0] for code in group[1:]}
    return verdicts


def written(verdicts: Iterable[tuple[str, str]], head: str) -> str:
    """Return the text of the file for (id, letter) of every call, in their order."""
    lines: dict[str, dict[str, dict[str, str]]] = {}
    for call, letter in verdicts:
        name, parameter, code = call.rsplit("/", 2)
        parameters = lines.setdefault(name, {})
        if letter != "-":
            groups = parameters.setdefault(parameter, {})
            groups[letter] = groups.get(letter, "") + code
    body = [
        " ".join([name, *(f"{p}:{','.join(map(''.join, groups.items()))}" for p, groups in parameters.items())])
        for name, parameters in lines.items()
    ]
    return "\n".join([*(f"# {line}" for line in head.splitlines()), *body]) + "\n"


def functions(path: Path) -> set[str]:
    """Return the names of the functions in a file, also of those that PyTorch does not have."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}
