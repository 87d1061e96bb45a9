"""A CUDA backend on a double of CuPy, under its own name: these tests do not run on a GPU."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _import_file(path: Path) -> ModuleType:
    """Import a file that is not in a package."""
    known = f"candelabra_tests_cuda_{path.stem}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


@pytest.fixture(scope="session")
def doubles() -> ModuleType:
    """Return the module of the doubles."""
    return _import_file(Path(__file__).parent / "double.py")


@pytest.fixture
def cupy(doubles: ModuleType) -> Any:
    """Return a double of CuPy with one device."""
    return doubles.double()


@pytest.fixture
def engine(cupy: Any) -> Any:
    """Return the engine of that device."""
    from candelabra_cuda.engine import CudaEngine

    return CudaEngine(cupy, 0, several=False)


@pytest.fixture(scope="session")
def tools() -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that imports modules of ``tools`` by name."""
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
        yield importlib.import_module
