"""Install what ``make cuda-check`` needs from a folder of wheels, in addition to the packages of the machine; nothing
is downloaded.

Usage: ``.venv/bin/python tools/cuda_install.py --wheels FOLDER FOLDER ...``, with the folders of the distributions. If
anything is missing, it lists all missing distributions, installs nothing and exits with status 1.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cuda_requirements import Required, finder, missing, of_machine, requirements_of

ROOT = Path(__file__).resolve().parents[1]
CUPY = (14, 0)
"""The first CuPy that candelabra-cuda works with."""


def main(words: Sequence[str] | None = None) -> int:
    """Check that everything is available, then install it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, required=True, help="the folder that `make cuda-wheels` filled")
    parser.add_argument("folders", nargs="+", help="of the distributions")
    options = parser.parse_args(words)
    if not options.wheels.is_dir():
        print(
            f"{options.wheels} is not a folder: `make cuda-wheels` creates one on a machine with a package index",
            file=sys.stderr,
        )
        return 1
    requirements = requirements_of(ROOT, options.folders)
    lacking = [line(*each) for each in missing(requirements, finder(options.wheels))] + cuda()
    if lacking:
        print(f"{len(lacking)} missing for make cuda-check on {sys.executable}:", file=sys.stderr)
        print("\n".join(f"- {each}" for each in lacking), file=sys.stderr)
        return 1
    lines = [str(each.requirement) for each in requirements if not of_machine(each.requirement.name)]
    editable = [word for folder in options.folders for word in ("--editable", str(ROOT / folder))]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]
    try:
        subprocess.run([*install, "--find-links", str(options.wheels), *lines], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", *editable], check=True)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


def line(required: Required, versions: list[str]) -> str:
    """Return a line with a missing requirement, the available versions, and how to get it."""
    there = f"; there is {', '.join(versions)}" if versions else ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    collected = f"collect it by `make cuda-wheels PYTHON_VERSION={python}` where there is a package index"
    own = of_machine(required.requirement.name)
    return f"{required}{there}: {'install it on this machine' if own else collected}"


def cuda() -> list[str]:
    """Return lines about CuPy and NVRTC if they are missing; loading them needs no GPU."""
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:
        return [f"CuPy>={'.'.join(map(str, CUPY))}: install it on this machine, with CUDA's libraries ({error})"]
    result = [] if tuple(map(int, cupy.__version__.split(".")[:2])) >= CUPY else [
        f"CuPy>={'.'.join(map(str, CUPY))}; there is {cupy.__version__}: install it on this machine"
    ]  # fmt: skip
    try:
        importlib.import_module("cupy_backends.cuda.libs.nvrtc").getVersion()
    except Exception as error:
        result.append(f"NVRTC, a library of CUDA: install it on this machine ({error})")
    return result


if __name__ == "__main__":
    raise SystemExit(main())
