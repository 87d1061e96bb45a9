"""Collect the wheels that ``make cuda-check`` needs on a machine without a package index: ``make cuda-wheels``.

Usage: ``python tools/cuda_wheels.py [--python-version 3.12] [--platform manylinux_2_28_x86_64] [--to cuda-wheels]
FOLDER ...``, with the folders of the distributions. Wheels that lie in the folder are removed first.
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

from cuda_requirements import of_machine, wanted

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 20 * 2**20
"""Bytes of all wheels, at most."""


def main(words: Sequence[str] | None = None) -> int:
    """Resolve for the other machine, download, and say what there is; 1 where pip fails or it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python-version", default="3.12", help="of the machine with the GPU")
    parser.add_argument("--platform", default="manylinux_2_28_x86_64", help="its platform, as wheels name it")
    parser.add_argument("--to", type=Path, default=ROOT / "cuda-wheels", help="the folder")
    parser.add_argument("folders", nargs="+", help="of the distributions that the check installs")
    given = parser.parse_args(words)
    target = ["--only-binary=:all:", "--python-version", given.python_version, "--implementation", "cp"]
    target += [word for name in platforms(given.platform) for word in ("--platform", name)]
    lines = [str(each.requirement) for each in wanted(ROOT, given.folders)]
    try:
        pins = resolved(lines, target)
        given.to.mkdir(parents=True, exist_ok=True)
        for path in given.to.glob("*.whl"):
            path.unlink()
        pip("download", "--quiet", "--no-deps", "--dest", str(given.to), *target, *pins)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    wheels = sorted(given.to.glob("*.whl"))
    size = sum(path.stat().st_size for path in wheels)
    for path in wheels:
        print(f"{path.stat().st_size / 2**20:5.1f} MiB  {path.name}")
    print(f"{given.to}: {len(wheels)} wheels, {size / 2**20:.1f} MiB, for Python {given.python_version}")
    if size > LARGEST:
        print(f"{given.to} has more than {LARGEST >> 20} MiB", file=sys.stderr)
    return int(size > LARGEST)


def platforms(name: str) -> list[str]:
    """The platforms whose wheels run on one: of a ``manylinux`` with a version of glibc those with older ones too."""
    found = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", name)
    if found is None:
        return [name]
    newest, machine = int(found[1]), found[2]
    older = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, 4, -1)]
    named = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    return [*older, *(f"{each}_{machine}" for minor, each in named.items() if minor <= newest)]


def resolved(lines: Sequence[str], target: Sequence[str]) -> list[str]:
    """The versions that pip would install there, less what is the machine's own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        nowhere = ("--target", str(Path(folder) / "nowhere"))
        pip("install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report), *nowhere, *target, *lines)
        found = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return [f"{each['name']}=={each['version']}" for each in found if not of_machine(each["name"])]


def pip(*words: str) -> None:
    """Run pip; it says what is wrong itself. ``CalledProcessError`` where it fails."""
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
