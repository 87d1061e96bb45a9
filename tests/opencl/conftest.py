"""The devices of these tests: the first OpenCL device, and variants of it with changed properties.

Most of the time goes into compiling kernels. So ``make test`` runs a quarter of each test's cases on the device, an
eighth of those on the variants, whose kernel forms a processor does not use, and at least one of each. ``make
test-all`` runs all. Tests on the variants have the mark ``variant``: they are not run again for older processors.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.backend import Kernel
from candelabra.library import open_device, plugins
from candelabra_clike import Engine, convolution_products
from candelabra_clike.kernels import attention
from candelabra_clike.kernels.attention import Multiply
from candelabra_opencl.backend import OpenCLBackend

from tests.sampling import one_in

DEVICE = frozenset({"device", "engine"})
VARIANTS = frozenset({"lanes", "products", "single", "cacheless"})
REGISTERS = frozenset({"registers"})
"""The fixtures that are the device, variants of it, and variants whose forms some processors use."""


@pytest.hookimpl(tryfirst=True)  # This hook runs before the marks select tests.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on the variants, and most of each test's cases for ``make test-all``."""
    folder = str(Path(__file__).parent)
    here = {item.nodeid: item for item in items if str(item.path).startswith(folder)}
    variants = {name for name, item in here.items() if _uses(item, VARIANTS)}
    plain = {name for name, item in here.items() if _uses(item, DEVICE)} - variants
    for name, item in here.items():
        if name in variants or _uses(item, REGISTERS):
            item.add_marker(pytest.mark.variant)
    for count, names in ((4, plain), (8, variants)):
        for name in names - one_in(count, names, lambda name: name.partition("[")[0]):
            here[name].add_marker(pytest.mark.thorough)


def _uses(item: pytest.Item, devices: AbstractSet[str]) -> bool:
    """Return whether a test has one of the devices as a fixture or as a parameter."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return not devices.isdisjoint([*item.fixturenames, *(p for p in parameters if isinstance(p, str))])


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


def multiplying(d: cd.dtype) -> Multiply | None:
    """Return the matrix product of a dtype, as a library would."""
    return attention.multiply if d.is_floating_point else None


class WithProducts(OpenCLBackend):
    """A device whose convolutions are matrix products, as where a library multiplies."""

    def kernels(self) -> Mapping[str, Kernel]:
        return {**super().kernels(), **convolution_products.kernels(multiplying)}


@pytest.fixture(scope="module")
def products() -> Iterator[cd.device]:
    """Install the device with convolutions that are matrix products."""
    yield from _installed(WithProducts("products", serial=False))


@pytest.fixture(scope="module", params=[(8, 16), (16, 32)], ids=["32-bytes", "64-bytes"])
def registers(request: pytest.FixtureRequest) -> Iterator[cd.device]:
    """Install the device with the kernels' forms for vector registers of two sizes: correct on every processor."""
    lanes, count = request.param
    yield from _installed(OpenCLBackend(f"registers{lanes}", lanes=lanes, registers=count))


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
