"""Expected failures: a list in the backend's package, with reasons, links and dates.

``expected_failures.toml`` is in the folder of the module that the entry point names::

    [[failure]]
    id = "softmax/value/float16/*"      # a pattern of case ids, as fnmatch reads them
    reason = "the driver's exp loses a bit"
    link = "https://example.org/issues/7"
    expires = 2027-01-01                # optional: from that day on it is reported as stale, and no longer expected
    flaky = false                       # optional: true where it fails from time to time; it may then pass, too

An entry that is not flaky is strict: a listed case that passes is a failure.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import tomllib
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from candelabra.library import plugins

from candelabra_conformance.model import CRASHED, EXPECTED, FAILED, PASSED, TIMED_OUT, UNEXPECTED, UNSUPPORTED, Result

NAME: Final = "expected_failures.toml"
KEYS: Final = {"id", "reason", "link", "expires", "flaky"}


class ExpectedFailuresError(ValueError):
    """An invalid file of expected failures."""


@dataclass(frozen=True)
class ExpectedFailure:
    """One entry of the file."""

    pattern: str
    reason: str
    link: str = ""
    expires: date | None = None
    flaky: bool = False

    def about(self, case_id: str) -> bool:
        return fnmatch.fnmatchcase(case_id, self.pattern)


def read(path: Path) -> list[ExpectedFailure]:
    """Return the entries of a file. Raise :class:`ExpectedFailuresError` if one is invalid."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("failure", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExpectedFailuresError(f"{path.name} is no TOML: {error}") from error
    if not isinstance(entries, list):
        raise ExpectedFailuresError(f"{path.name}: write [[failure]] with two brackets, a table for each entry")
    return [_entry(path.name, number, entry) for number, entry in enumerate(entries, 1)]


def _entry(file: str, number: int, entry: Any) -> ExpectedFailure:
    where = f"{file}, entry {number}"
    if unknown := sorted(set(entry) - KEYS):
        raise ExpectedFailuresError(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(sorted(KEYS))}")
    for key in ("id", "reason"):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise ExpectedFailuresError(
                f"{where}: {key!r} is missing; every expected failure has a pattern and a reason"
            )
    expires = entry.get("expires")
    if expires is not None and type(expires) is not date:
        raise ExpectedFailuresError(f"{where}: 'expires' must be a date like 2027-01-31, got {expires!r}")
    return ExpectedFailure(
        entry["id"], entry["reason"], entry.get("link", ""), expires, bool(entry.get("flaky", False))
    )


def of_backend(device_type: str) -> Path | None:
    """Return the file in the package of the device type's entry point or of the backend's module, or None."""
    return next((folder / NAME for folder in package_folders(device_type) if (folder / NAME).is_file()), None)


def package_folders(device_type: str) -> list[Path]:
    """Return the folders of the package of the device type's entry point or of the backend's module, and of the
    packages that contain it, the innermost first."""
    plugin = plugins.plugins().get(device_type)
    if plugin is None:
        return []
    module = plugin.entry.value.split(":")[0] if plugin.entry is not None else type(plugin.backend).__module__
    found = []
    while module:
        found += [Path(folder) for folder in _folders(module)]
        module = module.rpartition(".")[0]
    return found


def _folders(module: str) -> list[str]:
    """Return the folders of a package. A script, an interactive session and a module made by hand have none."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def applied(results: list[Result], entries: list[ExpectedFailure], today: date) -> tuple[list[Result], tuple[str, ...]]:
    """Return the results with expected failures marked, and the stale patterns with their reasons."""
    stale = [f"{e.pattern}: expired on {e.expires}" for e in entries if e.expires is not None and e.expires <= today]
    living = [e for e in entries if e.expires is None or e.expires > today]
    matched: set[str] = set()
    changed = []
    for result in results:
        entry = next((e for e in living if e.about(result.case.id)), None)
        if entry is not None:
            matched.add(entry.pattern)
            result = _with_expectation(result, entry)
        changed.append(result)
    stale += [f"{e.pattern}: no case has such an id" for e in living if e.pattern not in matched]
    return changed, tuple(stale)


def _with_expectation(result: Result, entry: ExpectedFailure) -> Result:
    why = entry.reason + (f" ({entry.link})" if entry.link else "")
    if result.verdict in (FAILED, CRASHED, TIMED_OUT, UNSUPPORTED):
        return replace(result, verdict=EXPECTED, message=f"{why}\n{result.message}")
    if result.verdict == PASSED and not entry.flaky:
        return replace(result, verdict=UNEXPECTED, message=f"listed as an expected failure ({why}), but it passed")
    return result
