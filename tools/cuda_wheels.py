"""Collect the wheels that ``make cuda-check`` needs on a machine without a package index: ``make cuda-wheels``.

Usage: ``python tools/cuda_wheels.py [--python-version 3.12] [--platform manylinux_2_28_x86_64] [--to cuda-wheels]
FOLDER ...``, with the folders of the distributions. Old wheels in the folder are removed first.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cuda_requirements import of_machine, requirements_of

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 20 * 2**20
"""The maximum size of all wheels, in bytes."""


def main(words: Sequence[str] | None = None) -> int:
    """Resolve for the other machine, download and list the wheels. Return 1 if pip fails or the wheels are too
    large.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python-version", default="3.12", help="of the machine with the GPU")
    parser.add_argument("--platform", default="manylinux_2_28_x86_64", help="its platform, as wheels name it")
    parser.add_argument("--to", type=Path, default=ROOT / "cuda-wheels", help="the folder")
    parser.add_argument("folders", nargs="+", help="of the distributions that the check installs")
    options = parser.parse_args(words)
    target = ["--only-binary=:all:", "--python-version", options.python_version, "--implementation", "cp"]
    target += [word for name in platforms(options.platform) for word in ("--platform", name)]
    lines = [str(each.requirement) for each in requirements_of(ROOT, options.folders)]
    try:
        pins = resolved(lines, target)
        options.to.mkdir(parents=True, exist_ok=True)
        for path in options.to.glob("*.whl"):
            path.unlink()
        pip("download", "--quiet", "--no-deps", "--dest", str(options.to), *target, *pins)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    wheels = sorted(options.to.glob("*.whl"))
    size = sum(path.stat().st_size for path in wheels)
    for path in wheels:
        print(f"{path.stat().st_size / 2**20:5.1f} MiB  {path.name}")
    print(f"{options.to}: {len(wheels)} wheels, {size / 2**20:.1f} MiB, for Python {options.python_version}")
    if size > LARGEST:
        print(f"{options.to} has more than {LARGEST >> 20} MiB", file=sys.stderr)
    return int(size > LARGEST)


def platforms(name: str) -> list[str]:
    """Return the platforms whose wheels run on one: of a ``manylinux`` with a version of glibc those with older ones
    too.
    """
    match = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", name)
    if match is None:
        return [name]
    newest, machine = int(match[1]), match[2]
    older = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)]
    named = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    return [*older, *(f"{each}_{machine}" for minor, each in named.items() if minor <= newest)]


def resolved(lines: Sequence[str], target: Sequence[str]) -> list[str]:
    """Return the versions that pip would install there, without the distributions of the machine."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        nowhere = ("--target", str(Path(folder) / "nowhere"))
        pip("install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report), *nowhere, *target, *lines)
        items = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return [f"{each['name']}=={each['version']}" for each in items if not of_machine(each["name"])]


def pip(*words: str) -> None:
    """Run pip; it says what is wrong itself. ``CalledProcessError`` where it fails."""
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
