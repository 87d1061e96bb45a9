"""Fake distributions, installed in a folder that only the programs of one test see."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOOD = """
from candelabra.backend import hookimpl
from tests.lantern import LanternBackend

class Made(LanternBackend):
    name = NAME

class Plugin:
    @hookimpl
    def candelabra_backend(self):
        return Made()

plugin = Plugin()
"""


class Site:
    """A folder of fake distributions, which is first on sys.path of the programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, device_type: str, source: str, distribution: str = "", group: str = "backends") -> None:
        """Create one distribution with one module and its entry point, which the device type names."""
        distribution = distribution or f"acme-{device_type}"
        module = distribution.replace("-", "_") + "_module"
        source = textwrap.dedent(source).replace("NAME", repr(device_type))
        (self.folder / f"{module}.py").write_text(source)
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[candelabra.{group}]\n{device_type} = {module}:plugin\n")

    def run(self, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python text in a new interpreter."""
        paths = os.pathsep.join([str(self.folder), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, "PYTHONPATH": paths, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def output_of(self, program: str, **environment: str) -> str:
        """Return the output of a program that must succeed."""
        completed = self.run(
            "import candelabra as cd\nfrom candelabra._plugins import registry\n" + textwrap.dedent(program),
            **environment,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed.stdout
