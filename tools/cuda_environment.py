"""Create an environment on top of all packages that a Python has installed: ``python3 tools/cuda_environment.py
.venv``.

``python -m venv --system-site-packages`` shows the packages of the base Python, and not those of a virtual environment
from which it is called. A ``.pth`` file in the new environment shows these, too.
"""

from __future__ import annotations

import importlib.util
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

OLDEST = (3, 11)
BELOW = "packages-below.pth"
SET_UP = ".packages"
"""The file in an environment that ``make`` has set up from a package index."""


def main(folder: Path) -> int:
    """Create the environment. Return 1 if that is impossible."""
    if sys.version_info < OLDEST:
        print(f"{sys.executable} is Python {sys.version.split()[0]}: PYTHON=… names one from 3.11 on", file=sys.stderr)
        return 1
    if (folder / SET_UP).exists():
        print(f"{folder} was set up from a package index: `make clean` removes it", file=sys.stderr)
        return 1
    nested = sys.prefix != sys.base_prefix
    has_pip = importlib.util.find_spec("pip") is not None
    try:
        venv.create(folder, system_site_packages=not nested, with_pip=not has_pip, clear=True, symlinks=True)
    except subprocess.CalledProcessError as error:
        print(
            f"{sys.executable} has neither pip nor ensurepip, so that nothing can be installed: {error}",
            file=sys.stderr,
        )
        return 1
    if nested:
        (packages(folder) / BELOW).write_text(below(site.PREFIXES, site.getsitepackages()), encoding="utf-8")
    return 0


def packages(folder: Path) -> Path:
    """Return the new environment's folder of packages."""
    base = {"base": str(folder), "platbase": str(folder)}
    return Path(sysconfig.get_path("purelib", "venv", vars=base))


def below(prefixes: list[str], folders: list[str]) -> str:
    """Return the ``.pth`` file that shows folders of packages.

    It also adds the prefixes, so that ``site.getsitepackages()``, with which CUDA's Python packages search for
    libraries, returns the folders.
    """
    lines = [f"import site; site.PREFIXES.append({prefix!r})" for prefix in prefixes]
    return "\n".join([*lines, *(f"import site; site.addsitedir({folder!r})" for folder in folders)]) + "\n"


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
