"""Type the blocks of a page into files, in order, and run them as a reader does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```", re.M | re.S)
NAMED = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")


def typed(page: Path, folder: Path) -> Path:
    """Write the blocks of a page into files in ``folder``. Return the path of the program.

    A block whose first line is a comment with a path is that file. All other Python blocks follow each other in one
    program.
    """
    program = []
    for language, text in BLOCK.findall(page.read_text("utf-8")):
        named = NAMED.match(text)
        if named:
            target = folder / named[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif language == "python":
            program.append(text)
    path = folder / "page.py"
    path.write_text("\n".join(program), encoding="utf-8")
    return path


def installed(folder: Path) -> dict[str, str]:
    """Return the environment in which the package of ``folder``, if there is one, is installed in place."""
    project = folder / "pyproject.toml"
    if not project.exists():
        return dict(os.environ)
    about = tomllib.loads(project.read_text("utf-8"))["project"]
    metadata = folder / "src" / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (metadata / "METADATA").write_text(head)
    groups = about["entry-points"].items()
    lines = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups)
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    path = os.pathsep.join([str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def executed(*command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run Python with these arguments in ``folder`` and return its output. Warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
