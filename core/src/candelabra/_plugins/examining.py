"""Load plugins and list their devices, each in a process of its own with a time limit.

``candelabra devices`` and ``doctor`` ask every plugin, also one whose import hangs or ends the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path

from candelabra._annotations import Any, Final
from candelabra._device import named_device
from candelabra._plugins import contributed_kernels, registry
from candelabra._plugins.contributed_kernels import Contribution
from candelabra._plugins.describing import summary, text_of
from candelabra.errors import BackendError, DeviceUnavailable

SECONDS: Final = 60.0
"""The default time limit for one plugin."""
PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from candelabra._plugins.examining import write; write(sys.argv[2], sys.argv[3])"
)
LAST: Final = 2000
"""The number of characters of a plugin's output that are shown if its process ends."""


@dataclass
class ExaminedContribution:
    """What was found about the kernels that a distribution contributes to a device type."""

    distribution: str
    source: str
    """The value of the entry point."""
    kernels: int = 0
    precedence: int = 0
    note: str = ""
    """The reason for having no kernels, if it is not a failure."""
    failure: str = ""
    traceback: str = ""


@dataclass
class Examination:
    """What was found about one plugin."""

    name: str
    steps: list[str] = field(default_factory=lambda: ["found"])
    window: str = ""
    """The first and the last version of the contract that the backend was built for; empty if it did not load."""
    devices: list[tuple[str, str, str]] = field(default_factory=list)
    """The name of each device, its description, and the description with the facts."""
    unavailable: str | None = None
    """The plugin's reason for having no devices."""
    failure: str = ""
    traceback: str = ""
    contributions: list[ExaminedContribution] = field(default_factory=list)


def examine(plugin: registry.Plugin) -> Examination:
    """Load a plugin in this process and list its devices. Of all that a plugin may raise, only Ctrl-C passes."""
    found = Examination(plugin.name)
    try:
        backend, _ = registry.load(plugin)
    except DeviceUnavailable as reason:
        found.steps, found.unavailable = plugin.steps, text_of(reason)
        return found
    except BackendError as error:
        known = plugin.error
        found.steps, found.failure = plugin.steps, summary(error if known is None else known)
        found.traceback = plugin.traceback
        return found
    found.contributions = [_examined(each) for each in _contributions(plugin)]
    low, high = backend.api
    found.steps, found.window = plugin.steps, f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
    try:
        devices = registry.devices_of(backend)
        for index, info in enumerate(devices):
            found.devices.append((str(named_device(backend, index, len(devices))), info.name, info.line))
    except DeviceUnavailable as reason:
        found.unavailable = text_of(reason)
    except Exception as error:
        words = text_of(error) if isinstance(error, BackendError) else summary(error)
        found.devices, found.failure, found.traceback = [], words, traceback.format_exc()
    return found


def _contributions(plugin: registry.Plugin) -> list[Contribution]:
    """Return the loaded contributions to a device type in the order in which they serve, then those that are switched
    off.
    """
    hidden = [each for each in contributed_kernels.installed(plugin.name) if not contributed_kernels.is_allowed(each)]
    return [*plugin.contributions, *hidden]


def _examined(contribution: Contribution) -> ExaminedContribution:
    hidden = contribution.entry is not None and not contributed_kernels.is_allowed(contribution)
    return ExaminedContribution(
        contribution.distribution,
        contribution.entry.value if contribution.entry is not None else "added by hand",
        len(contribution.kernels),
        contribution.precedence,
        f"switched off by {contributed_kernels.ENVIRONMENT}" if hidden else contribution.unavailable,
        contribution.failure,
        contribution.traceback,
    )


def examine_isolated(plugins: Iterable[registry.Plugin], seconds: float = SECONDS) -> list[Examination]:
    """Examine each plugin in a process of its own, several at once.

    A plugin that is loaded already, or was added by hand, is examined here. A plugin whose process hangs or dies is not
    loaded in this process either: its error says so from then on. If it works without the kernels that distributions
    contribute to it, only they are not loaded.
    """
    runs = [(plugin, None if _is_here(plugin) else _Examination(plugin, seconds)) for plugin in plugins]
    try:
        return [examine(plugin) if run is None else run.result() for plugin, run in runs]
    finally:
        for _, run in runs:
            if run is not None:
                run.close()


def _is_here(plugin: registry.Plugin) -> bool:
    installed = isinstance(plugin.entry, EntryPoint)  # otherwise another process does not find it
    return not installed or plugin.loaded or plugin.error is not None or not sys.executable


class _Examination:
    """A process that examines one plugin."""

    def __init__(self, plugin: registry.Plugin, seconds: float, environment: Mapping[str, str] | None = None) -> None:
        self.plugin = plugin
        self.seconds = seconds
        self.until = time.monotonic() + seconds
        self.folder = tempfile.TemporaryDirectory(prefix="candelabra-", ignore_cleanup_errors=True)
        self.answer = Path(self.folder.name, "answer.json")
        self.output = Path(self.folder.name, "output.txt")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(sys.path), plugin.name, str(self.answer)],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def result(self) -> Examination:
        """Wait for the process and return what it found."""
        found, words = self.answered()
        if found is not None:
            return found
        output = self.output.read_text(encoding="utf-8", errors="replace")[-LAST:]
        contributed = [
            each for each in contributed_kernels.installed(self.plugin.name) if contributed_kernels.is_allowed(each)
        ]
        if contributed:
            alone = _Examination(self.plugin, self.seconds, {contributed_kernels.ENVIRONMENT: "0"})
            try:
                found, _ = alone.answered()
            finally:
                alone.close()
        if found is None:
            self.plugin.error, self.plugin.traceback = BackendError(words), output
            return examine(self.plugin)
        contributed_kernels.LOST[self.plugin.name] = f"with contributed kernels, {words}; without them, it works"
        for each in contributed:
            each.error, each.traceback = BackendError(contributed_kernels.LOST[self.plugin.name]), output
        found.contributions = [_examined(each) for each in contributed]
        return found

    def answered(self) -> tuple[Examination | None, str]:
        """Wait for the process, and return what it found, or None and the reason why it gave no answer."""
        try:
            status = self.process.wait(max(self.until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return None, f"it did not load and list its devices within {self.seconds:g} s"
        try:
            found: dict[str, Any] = json.loads(self.answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            ended = f"on signal {-status}" if status < 0 else f"with status {status}"
            return None, f"the process that loaded it ended {ended}"
        found["contributions"] = [ExaminedContribution(**each) for each in found["contributions"]]
        return Examination(**found), ""

    def close(self) -> None:
        """End the process if it still runs, and remove its files."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def write(name: str, path: str) -> None:
    """Examine the plugin of that name and write the result to a file; :func:`examine_isolated` reads it."""
    plugin = registry.plugins()[name]
    answer = json.dumps(asdict(examine(plugin)))
    partial = Path(f"{path}.partial")
    partial.write_text(answer, encoding="utf-8")
    partial.rename(path)
