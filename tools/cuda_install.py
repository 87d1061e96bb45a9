"""Install what ``make cuda-check`` needs from a folder of wheels, over what the machine has; nothing is downloaded.

Usage: ``.venv/bin/python tools/cuda_install.py --wheels FOLDER FOLDER ...``, with the folders of the distributions.
Before anything is installed all that is missing is named: 1 is the exit status then.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cuda_requirements import Wanted, finder, missing, of_machine, wanted

ROOT = Path(__file__).resolve().parents[1]
CUPY = (14, 0)
"""The first CuPy that candelabra-cuda works with."""


def main(words: Sequence[str] | None = None) -> int:
    """Look for everything, then install."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="the folder that `make cuda-wheels` filled")
    parser.add_argument("folders", nargs="+", help="of the distributions")
    given = parser.parse_args(words)
    if not given.wheels.is_dir():
        print(
            f"{given.wheels} is no folder: `make cuda-wheels` makes one where there is a package index", file=sys.stderr
        )
        return 1
    requirements = wanted(ROOT, given.folders)
    lacking = [line(*each) for each in missing(requirements, finder(given.wheels))] + cuda()
    if lacking:
        print(f"{len(lacking)} missing for make cuda-check on {sys.executable}:", file=sys.stderr)
        print("\n".join(f"- {each}" for each in lacking), file=sys.stderr)
        return 1
    lines = [str(each.requirement) for each in requirements if not of_machine(each.requirement.name)]
    editable = [word for folder in given.folders for word in ("--editable", str(ROOT / folder))]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]
    try:
        subprocess.run([*install, "--find-links", str(given.wheels), *lines], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", *editable], check=True)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


def line(wanted: Wanted, versions: list[str]) -> str:
    """What is missing, what there is in its place, and who brings it."""
    there = f"; there is {', '.join(versions)}" if versions else ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    collected = f"collect it by `make cuda-wheels PYTHON_VERSION={python}` where there is a package index"
    own = of_machine(wanted.requirement.name)
    return f"{wanted}{there}: {'install it on this machine' if own else collected}"


def cuda() -> list[str]:
    """What is missing of CuPy and NVRTC, which need no GPU to be loaded."""
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:
        return [f"CuPy>={'.'.join(map(str, CUPY))}: install it on this machine, with CUDA's libraries ({error})"]
    found = [] if tuple(map(int, cupy.__version__.split(".")[:2])) >= CUPY else [
        f"CuPy>={'.'.join(map(str, CUPY))}; there is {cupy.__version__}: install it on this machine"
    ]  # fmt: skip
    try:
        importlib.import_module("cupy_backends.cuda.libs.nvrtc").getVersion()
    except Exception as error:
        found.append(f"NVRTC, a library of CUDA: install it on this machine ({error})")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
