"""The devices of these tests: the first OpenCL device, and variants of it with changed properties.

A processor does not use the kernel forms of these variants, and each form has to be compiled. So ``make test`` runs
a quarter of each test's cases on them, and ``make test-all`` runs all.
"""

from collections.abc import Iterator
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.library import open_device, plugins
from candelabra_clike import Engine
from candelabra_opencl.backend import OpenCLBackend

from tests.sampling import one_in

VARIANTS = frozenset({"lanes", "single", "cacheless"})
"""The fixtures that are variants of the device."""


@pytest.hookimpl(tryfirst=True)  # This hook runs before the marks select tests.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark three quarters of each test's cases on variants for ``make test-all``."""
    folder = str(Path(__file__).parent)
    unlike = {item.nodeid: item for item in items if str(item.path).startswith(folder) and _uses_variant(item)}
    for name in unlike.keys() - one_in(4, unlike, lambda name: name.partition("[")[0]):
        unlike[name].add_marker(pytest.mark.thorough)


def _uses_variant(item: pytest.Item) -> bool:
    """Return whether a test has a variant of the device as a fixture or as a parameter."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return not VARIANTS.isdisjoint([*item.fixturenames, *(p for p in parameters if isinstance(p, str))])


@pytest.fixture(scope="session")
def device() -> cd.device:
    """Return the first OpenCL device."""
    return cd.device("opencl", 0)


@pytest.fixture(scope="session")
def engine(device: cd.device) -> Engine:
    """Return its engine: the memory and the compiler that kernels use."""
    backend = open_device(device).backend
    assert isinstance(backend, OpenCLBackend)
    return backend.engine(0)


@pytest.fixture(scope="module")
def lanes() -> Iterator[cd.device]:
    """Install the device with the kernels' forms for GPUs: correct on every device, fast on few."""
    yield from _installed(OpenCLBackend("lanes", serial=False))


@pytest.fixture(scope="module")
def single() -> Iterator[cd.device]:
    """Install the device without float64."""
    yield from _installed(OpenCLBackend("single", float64=False))


@pytest.fixture(scope="module")
def cacheless() -> Iterator[cd.device]:
    """Install the device as if no data stayed in its caches."""
    yield from _installed(OpenCLBackend("cacheless", cache=0))


def _installed(backend: OpenCLBackend) -> Iterator[cd.device]:
    remove = plugins.add_backend(backend)
    yield cd.device(backend.name, 0)
    remove()
