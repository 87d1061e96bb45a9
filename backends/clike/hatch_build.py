"""The build hook: writes the index of names and the type stubs before a wheel, an sdist or an editable install.

In a checkout they are generated from the sources' syntax trees by ``tools/generate``. An sdist contains the generated
files, so a wheel that is built from it needs no tool.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Generates the files in a checkout; elsewhere only looks whether they are there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise ``FileNotFoundError`` where there are neither the files nor the tool that writes them."""
        here = Path(self.root)
        for root in here.parents[:2]:  # a distribution is a folder of the repository, or of its folder backends
            tools = root / "tools"
            if (tools / "generate" / "__init__.py").is_file():
                sys.path.insert(0, str(tools))
                try:
                    import generate

                    generate.write(root, only=here)
                finally:
                    sys.path.remove(str(tools))
        if not any((here / "src").glob("*/_index/*.py")):
            raise FileNotFoundError(f"{here}: no index of names, and no tools/generate in the repository to write it")
