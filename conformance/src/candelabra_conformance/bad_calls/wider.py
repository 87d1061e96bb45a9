"""Lists of bad calls that return on purpose, although PyTorch raises: ``function parameter codes: reason``."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import NamedTuple


class Wider(NamedTuple):
    """Patterns of functions and parameters, the codes of values, and the reason."""

    names: tuple[str, ...]
    parameters: tuple[str, ...]
    codes: str
    reason: str

    def covers(self, name: str, parameter: str, code: str) -> bool:
        """Return whether a bad call is among these."""
        return (
            (self.codes == "*" or code in self.codes)
            and any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)
            and any(fnmatch.fnmatchcase(parameter, pattern) for pattern in self.parameters)
        )


def read_reasons(path: Path) -> list[Wider]:
    """Return the lines of a list."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, reason = line.partition(": ")
            names, parameters, codes = head.split(" ")
            found.append(Wider(tuple(names.split("|")), tuple(parameters.split("|")), codes, reason))
    return found


def reason_for(call: str, reasons: list[Wider]) -> str:
    """Return why a bad call returns, by its id ``add/other/J``, or "" if it is not listed."""
    name, parameter, code = call.rsplit("/", 2)
    return next((line.reason for line in reasons if line.covers(name, parameter, code)), "")
