"""Install a package that ``candelabra new-backend`` wrote, in this process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from candelabra.library import plugins


@contextmanager
def installed(folder: Path) -> Iterator[Any]:
    """Install the package in a folder and yield its backend. On exit, the device and the modules are removed."""
    package = folder.name.replace("-", "_")
    sys.path.insert(0, str(folder / "src"))
    try:
        made = importlib.import_module(package).candelabra_backend()
        remove = plugins.add_backend(made)
        try:
            yield made
        finally:
            remove()
    finally:
        sys.path.remove(str(folder / "src"))
        for name in [n for n in sys.modules if n.partition(".")[0] == package]:
            del sys.modules[name]
