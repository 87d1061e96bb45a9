"""Find out whether a backend's files are newer than a report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

from candelabra_conformance.model import Run
from candelabra_conformance.running.expected import package_folders


def changed_since(run: Run) -> Path | None:
    """Return a file of the package of the run's backend that was written after the run began, or None.

    Only modules are compared, by their time of modification: a new installation of the same version counts as a change.
    """
    try:
        started = datetime.fromisoformat(run.started)
    except ValueError:
        return None
    if started.tzinfo is None:
        started = started.replace(tzinfo=UTC)
    newer = (path for path in _modules(run) if path.stat().st_mtime > started.timestamp() + 1)  # started is in seconds
    return next(newer, None)


def _modules(run: Run) -> Iterator[Path]:
    """Yield the modules of the package that the device's entry point names."""
    for folder in package_folders(run.subject.device.partition(":")[0]):
        for path in sorted(folder.rglob("*")):
            if path.name.endswith((*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)) and path.is_file():
                yield path
