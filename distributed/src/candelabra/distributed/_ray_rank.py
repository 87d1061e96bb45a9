"""What a rank of :func:`candelabra.distributed.ray.run` runs: the function, by its name."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from typing import Any

import candelabra as cd
from candelabra.distributed.ray import FOLDER

__all__ = ["main"]


def _function(module: str, name: str, file: str) -> Any:
    """Return a function of a module, or of the program of the driver, which is imported under another name."""
    found: Any = (
        runpy.run_path(file, run_name="__candelabra_main__") if file else vars(importlib.import_module(module))
    )[name]
    return found


def main() -> None:
    """Call the function and write its result."""
    folder = os.environ[FOLDER]
    task = cd.load(os.path.join(folder, "task"))
    sys.path[:0] = [path for path in task["path"] if path not in sys.path]
    result = _function(task["module"], task["name"], task["file"])(*task["args"])
    cd.save({"result": result}, os.path.join(folder, f"result-{os.environ['RANK']}"))


if __name__ == "__main__":
    main()
