"""Every kernel that a GPU would be given compiles with NVRTC, for three generations; no GPU is needed for that."""

from collections.abc import Iterator
from types import ModuleType

import pytest
from candelabra.operator.record import OPERATORS
from candelabra.plugins import registry
from candelabra_clike import CUDA, Source
from candelabra_clike.source import units
from candelabra_conformance.context import Context
from candelabra_cuda.compiling import compile_program, options

GENERATIONS = ("80", "90", "100")


@pytest.fixture(scope="module")
def sources(recording: ModuleType) -> Iterator[list[Source]]:
    """The kernels of every operator, on its samples in one dtype of each size and in two layouts."""
    backend = recording.RecordingBackend()
    remove = registry.add_backend(backend)
    context = Context(backend.name)
    try:
        for _ in recording.calls(context, sorted(OPERATORS), recording.QUICK):
            pass
        yield list(backend.recorder.sources)
    finally:
        remove()


@pytest.mark.parametrize("capability", GENERATIONS)
def test_every_kernel_compiles(sources: list[Source], capability: str) -> None:
    """NVRTC makes a CUBIN of each, with all its functions."""
    assert len(sources) > 300
    for first, program in units(sources, CUDA):
        assert compile_program("unit", program, options(first, capability))[:4] == b"\x7fELF"
