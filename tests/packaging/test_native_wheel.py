"""The wheels of candelabra-native with compiled kernels, for this platform and for another."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.native import elf

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "backends" / "native"
LEVELS = {"x86_64": ["x86_64_v3", "x86_64_v4"], "aarch64": ["aarch64"]}
MACHINES = {"x86_64": 62, "aarch64": 183}

POSSIBLE = importlib.util.find_spec("ziglang") is not None and Path(sysconfig.get_path("include"), "Python.h").is_file()
pytestmark = pytest.mark.skipif(not POSSIBLE, reason="the compiler, ziglang, or Python's headers are not installed")


def build(to: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel of the folder with these variables."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(to), str(FOLDER)]
    environment = {**os.environ, "CANDELABRA_CACHE": str(to / "cache"), **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("machine", ["x86_64", pytest.param("aarch64", marks=pytest.mark.thorough)])
def test_a_wheel_has_the_kernels_of_its_platform(machine: str, tmp_path: Path) -> None:
    """Its tag names the platform and the stable ABI; it has a library per processor level and the extension module."""
    calls = tmp_path / "calls.txt"
    calls.write_text("exp.T(T[64]) for f32, f64\n")
    built = build(tmp_path, CANDELABRA_NATIVE_PACK=str(calls), CANDELABRA_NATIVE_PLATFORM=machine)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"candelabra_native-0.1.0.dev0-cp311-abi3-manylinux_2_17_{machine}.whl"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
        (tag,) = (name for name in archive.namelist() if name.endswith("/WHEEL"))
        assert "Root-Is-Purelib: false" in archive.read(tag).decode()
    package = tmp_path / "wheel" / "candelabra_native"
    found = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.so"))
    assert found == ["launch/_launch.abi3.so", *(f"pack/kernels_{level}.so" for level in LEVELS[machine])]
    for path in package.rglob("*.so"):
        assert elf.read(path).machine == MACHINES[machine]
    for path in (package / "pack").glob("*.so"):
        library = elf.read(path)
        assert (len(library.exported), library.imported) == (2, [])


def test_a_wheel_for_an_unknown_platform_is_refused(tmp_path: Path) -> None:
    """The error lists the platforms."""
    built = build(tmp_path, CANDELABRA_NATIVE_PACK="short", CANDELABRA_NATIVE_PLATFORM="vax")
    assert built.returncode != 0
    assert "CANDELABRA_NATIVE_PLATFORM: expected one of x86_64, aarch64, got 'vax'" in built.stdout + built.stderr


def test_a_wheel_lacks_no_kernel_of_its_list(tmp_path: Path) -> None:
    """A list that cannot be read stops the build, since a wheel without its kernels would only be slow."""
    built = build(tmp_path, CANDELABRA_NATIVE_PACK=str(tmp_path / "none.txt"), CANDELABRA_NATIVE_PLATFORM="x86_64")
    assert built.returncode != 0
    assert "none.txt" in built.stdout + built.stderr
