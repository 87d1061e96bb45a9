"""The build hook: compiles the extension module and the kernels of a wheel.

``CANDELABRA_NATIVE_PACK`` names the list of kernels (``full`` in a release, which ``make dist`` builds; ``short``, or a
file), and ``CANDELABRA_NATIVE_PLATFORM`` the processor (``x86_64`` or ``aarch64``, by default this machine's): the
compiler builds for any of them. Without the first, the wheel has no compiled code and suits every platform, and NumPy
serves: to install from source takes no compiler.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIST: Final = "CANDELABRA_NATIVE_PACK"
PLATFORM: Final = "CANDELABRA_NATIVE_PLATFORM"
LEVELS: Final = {"x86_64": ("x86_64_v3", "x86_64_v4"), "aarch64": ("aarch64",)}
"""The processor levels of each platform."""
GLIBC: Final = (2, 17)
"""The oldest C library that the extension module runs with. Kernels need none."""
REQUIREMENTS: Final = ["ziglang>=0.14", "candelabra>=0.1.0.dev0,<0.2", "candelabra-clike>=0.1.0.dev0,<0.2"]


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled files to a wheel, and its tag."""

    folder = ""

    def dependencies(self) -> list[str]:
        """Return what compiling requires."""
        return REQUIREMENTS if os.environ.get(LIST) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile. Raises ``RuntimeError`` for an unknown platform, or with the error of the compiler."""
        listed = os.environ.get(LIST)
        if not listed or version == "editable":
            return
        machine = os.environ.get(PLATFORM) or platform.machine()
        if machine not in LEVELS:
            raise RuntimeError(f"{PLATFORM}: expected one of {', '.join(LEVELS)}, got {machine!r}")
        source = Path(self.root, "src")
        self.folder = tempfile.mkdtemp(prefix="candelabra-native-")
        glibc = ".".join(map(str, GLIBC))
        launch = runpy.run_path(str(source / "candelabra_native" / "launch" / "build.py"))
        extension = launch["build"](Path(self.folder), f"{machine}-linux-gnu.{glibc}")
        included = {str(extension): f"candelabra_native/launch/{extension.name}"}
        for level in LEVELS[machine]:
            library = built(source, listed, level, Path(self.folder))
            included[str(library)] = f"candelabra_native/pack/{library.name}"
        build_data["force_include"].update(included)
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-manylinux_{'_'.join(map(str, GLIBC))}_{machine}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiled files, which are in the wheel."""
        if self.folder:
            shutil.rmtree(self.folder)


def built(source: Path, listed: str, level: str, to: Path) -> Path:
    """Compile the library of a level. Raises ``RuntimeError`` if a kernel does not compile."""
    sys.path.insert(0, str(source))
    try:
        from candelabra_native.pack import libraries
        from candelabra_native.pack.__main__ import main
    finally:
        sys.path.remove(str(source))
    if main(["--list", listed, "--level", level, "--to", str(to), "--required"]):
        raise RuntimeError(f"the kernels for {level} cannot be compiled: see above")
    return libraries.path(level, to)
