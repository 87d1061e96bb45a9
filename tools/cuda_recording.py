"""A device without a device: it takes the kernels that operators would launch and runs none.

Its memory is the host's and full of zeros. What it computes means nothing; what it was asked to compile is all that
the kernels' sources have to offer on a GPU, and that can be given to a compiler where there is no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import candelabra as cd
from candelabra import nn, optim
from candelabra.backend import Capabilities, DeviceInfo
from candelabra.dtypes import ALL, dtype
from candelabra.errors import UnsupportedOperator
from candelabra.library import OPERATORS, fallback
from candelabra_clike import CUDA, CLikeBackend, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors
from candelabra_conformance.calling import called
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import placed

GPU = Traits(serial=False, compute_units=132, group=1024, local_memory=48 * 1024, memory=80 * 2**30, largest=80 * 2**30)
"""What a GPU says of itself."""


class RecordingEngine(Engine):
    """Its ``sources`` are those of every kernel that was wanted, each once."""

    dialect = CUDA
    traits = GPU
    index = 0

    def __init__(self) -> None:
        self.errors = DeviceErrors(self)
        self.sources: dict[Source, None] = {}
        self.operator = ""
        self.launched: set[str] = set()
        """The operators that launched a kernel, of those that ``operator`` was set to."""

    def allocate(self, nbytes: int) -> bytearray:
        return bytearray(nbytes)

    def read(self, buffer: bytearray, offset: int, nbytes: int) -> memoryview:
        return memoryview(bytes(buffer[offset : offset + nbytes]))

    def write(self, buffer: bytearray, offset: int, data: memoryview) -> None:
        buffer[offset : offset + data.nbytes] = data.cast("B")

    def copy(self, destination: bytearray, to: int, source: bytearray, start: int, nbytes: int) -> None:
        destination[to : to + nbytes] = source[start : start + nbytes]

    def compile(self, source: Source) -> Launch:
        self.sources[source] = None
        return lambda count, *arguments: self.launched.add(self.operator)

    def synchronize(self) -> None:
        """There is nothing to wait for."""


class RecordingBackend(CLikeBackend):
    """One device that records."""

    name = "recording"
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True)

    def __init__(self) -> None:
        self.recorder = RecordingEngine()

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a device that runs nothing")]

    def engine(self, index: int) -> RecordingEngine:
        return self.recorder


LAYOUTS = {"float32": ("contiguous", "transposed", "step", "broadcast")}
"""Kernels of a layout differ in loops around the same expression: one dtype has them all, the others two of them."""
ALL_NAMES = frozenset(d.name for d in ALL)
QUICK = frozenset({"float32", "bfloat16", "int64", "complex64", "bool"})
"""A dtype of each kind."""


def record(backend: RecordingBackend, names: Sequence[str], dtypes: frozenset[str] = ALL_NAMES) -> None:
    """Call operators on every sample there is, in these dtypes.

    What the calls raise matters little: on a device that computes nothing many fail. What counts is what they compiled.
    """
    context = Context(backend.name)
    with fallback("error"):
        for name in names:
            backend.recorder.operator = name
            for d in context.dtypes(OPERATORS[name]):
                if d.name in dtypes:
                    record_dtype(context, OPERATORS[name], d)
            if name in STEPS:
                record_steps(backend, STEPS[name])


def record_dtype(context: Context, op: Any, d: dtype) -> None:
    """Call an operator on its samples of one dtype, unless it turns out to have no kernel for that."""
    for layout in LAYOUTS.get(d.name, ("contiguous", "transposed")):
        for sample in context.each(op, d, layout):
            try:
                args = placed(sample.args, layout, context.instance)
                called(op, args, placed(dict(sample.kwargs), layout, context.instance), context.instance)
            except UnsupportedOperator:
                return
            except Exception:
                continue


STEPS: Final[dict[str, Callable[..., optim.Optimizer]]] = {
    "sgd_step": optim.SGD,
    "momentum_step": partial(optim.SGD, momentum=0.9),
    "adam_step": optim.Adam,
    "amsgrad_step": partial(optim.Adam, amsgrad=True),
}
"""The optimisers whose steps have kernels for many parameters, which no operator's sample asks for."""


def record_steps(backend: RecordingBackend, make: Callable[..., optim.Optimizer], parameters: int = 50) -> None:
    """Do a step of more parameters than one launch takes: the launches are of different widths."""
    with cd.device(backend.name):
        moved = [nn.Parameter(cd.zeros(2)) for _ in range(parameters)]
        for p in moved:
            p.grad = cd.zeros(2)
    make(moved).step()
