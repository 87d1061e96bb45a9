"""The devices of these tests: the first OpenCL device there is, whatever it is, and the same one made to differ."""

from collections.abc import Iterator

import candelabra as cd
import pytest
from candelabra.library import open_device, plugins
from candelabra_clike import Engine
from candelabra_opencl.backend import OpenCLBackend


@pytest.fixture(scope="session")
def device() -> cd.device:
    """The first OpenCL device."""
    return cd.device("opencl", 0)


@pytest.fixture(scope="session")
def engine(device: cd.device) -> Engine:
    """Its engine: memory and compiler, as the kernels see it."""
    backend = open_device(device).backend
    assert isinstance(backend, OpenCLBackend)
    return backend.engine(0)


@pytest.fixture(scope="module")
def lanes() -> Iterator[cd.device]:
    """The same device under another name, with the kernels' forms for GPUs: right on every device, fast on few."""
    yield from _installed(OpenCLBackend("lanes", serial=False))


@pytest.fixture(scope="module")
def single() -> Iterator[cd.device]:
    """The same device under another name, as if it had no float64."""
    yield from _installed(OpenCLBackend("single", float64=False))


@pytest.fixture(scope="module")
def cacheless() -> Iterator[cd.device]:
    """The same device under another name, as if nothing stayed in its caches."""
    yield from _installed(OpenCLBackend("cacheless", cache=0))


def _installed(backend: OpenCLBackend) -> Iterator[cd.device]:
    remove = plugins.add_backend(backend)
    yield cd.device(backend.name, 0)
    remove()
