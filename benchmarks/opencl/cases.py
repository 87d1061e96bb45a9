"""The cases that are measured on an OpenCL device, their peers, and the ratios that must hold.

The text of a case is over ``xp``: candelabra on the device, and PyTorch on the same processor. ``pyopencl.array`` and
tinygrad have separate texts. ``done()`` waits for the device. If a case of 8 elements is ``queued``, the wait is not
part of the time.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.cases import Case
from benchmarks.compilers_tinygrad import NETWORK
from benchmarks.processor import GPT, RESNET

BATCHES = 25
"""The number of batches in a turn; they are short, because machines may be busy."""
SIZES = {
    "full": {"n": 1 << 22, "rows": 4096, "columns": 1000, "side": 1024, "images": 16, "batch": 64, "edge": 2000,
             "matrices": 64, "height": 128},
    "tiny": {"n": 1 << 6, "rows": 4, "columns": 10, "side": 8, "images": 1, "batch": 2, "edge": 8, "matrices": 2,
             "height": 8},
}  # fmt: skip
"""The values of the sizes in the texts; ``tiny`` is for the tests."""


class Compared(NamedTuple):
    """One measurement of candelabra, and that of a peer.

    ``mark`` is the ratio of the times that must hold, ``goal`` the desired one, ``limit`` candelabra's time in µs.
    """

    name: str
    peer: str
    """``torch``, ``pyopencl`` or ``tinygrad``."""
    statement: str
    setup: str
    mark: float | None = None
    goal: float | None = None
    limit: float | None = None
    theirs: tuple[str, str] | None = None
    """The peer's statement and setup, if they differ."""
    calls: int = 1
    """Calls in a statement; times are per call."""
    prepare: str = ""
    tune: float = 1.0
    """The fraction of the usual duration of a measurement; with a smaller one, fewer calls are queued at once."""

    def case(self, is_own: bool, sizes: str) -> Case:
        """Return the case for one side's worker."""
        statement, setup = (self.statement, self.setup) if is_own or self.theirs is None else self.theirs
        named = "; ".join(f"{name} = {value}" for name, value in SIZES[sizes].items())
        return Case(self.name, statement, f"{named}\n{setup}", prepare=self.prepare, batches=BATCHES)


BOTH = """
ours = xp.__name__ == "candelabra"
place = "opencl:0" if ours else "cpu"
done = xp.opencl.synchronize if ours else lambda: None
F = __import__(xp.__name__ + ".nn.functional", fromlist=["functional"])
xp.manual_seed(0)
"""
LARGE = f"{BOTH}x, y = xp.rand(n, device=place) + 0.5, xp.rand(n, device=place)"
ROWS = f"""{BOTH}
x = xp.randn(rows, columns, device=place)
weight, bias = xp.rand(columns, device=place), xp.rand(columns, device=place)
"""
MATRICES = f"{BOTH}a, b = xp.randn(side, side, device=place), xp.randn(side, side, device=place)"
SQUARE = f"{BOTH}a, b = xp.rand(edge, edge, device=place), xp.rand(edge, edge, device=place)"
PRODUCTS = f"""{BOTH}
p, q = xp.randn(matrices, height, height, device=place), xp.randn(matrices, height, height, device=place)
"""
IMAGES = f"""{BOTH}
x = xp.randn(images, 64, 32, 32, device=place)
w = xp.randn(64, 64, 3, 3, device=place).requires_grad_()
g = xp.randn(images, 64, 32, 32, device=place)
y = F.conv2d(x, w, padding=1)
frozen = w.detach()
"""
SMALL = f"""{BOTH}
x, y = xp.ones(8, device=place), xp.ones(8, device=place)
c, m = x > 0, xp.ones(8, 8, device=place)
"""
STEP = f"""{BOTH}
nn = __import__(xp.__name__ + ".nn", fromlist=["nn"])
optim = __import__(xp.__name__ + ".optim", fromlist=["optim"])
model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 7 * 7, 10),
).to(place)
optimizer = optim.SGD(model.parameters(), lr=0.01)
images, labels = xp.randn(batch, 1, 28, 28, device=place), xp.randint(0, 10, (batch,)).to(place)
loss = nn.CrossEntropyLoss()
def step():
    optimizer.zero_grad()
    loss(model(images), labels).backward()
    optimizer.step()
"""
RESNET_STEP = f"""{BOTH}{RESNET}
model, x, y = model.to(place), x.to(place), y.to(place)
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
"""
COMPILED_STEP = f"{STEP}compiled = step if xp.__name__ == 'torch' else xp.compile(step)\n"
COMPILED_GPT = f"""{BOTH}{GPT}
model, x, y = model.to(place), x.to(place), y.to(place)
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
compiled = step if xp.__name__ == 'torch' else xp.compile(step)
"""
PYOPENCL = """
import numpy
import pyopencl
from candelabra_opencl.discovery import find
from pyopencl.tools import ImmediateAllocator, MemoryPool
context = pyopencl.Context([find()[0].device])
queue = pyopencl.CommandQueue(context)
pool = MemoryPool(ImmediateAllocator(queue))
few, many = (xp.to_device(queue, numpy.ones(count, numpy.float32)) for count in (8, n))
few_pooled, many_pooled = (xp.to_device(queue, numpy.ones(count, numpy.float32), allocator=pool) for count in (8, n))
done = queue.finish
"""
TINYGRAD = f"""
import ctypes
import os
from tinygrad import Tensor, TinyJit, nn
from tinygrad.runtime import ops_cl
cl = ops_cl.cl
count = ctypes.c_uint32()
cl.clGetPlatformIDs(0, None, count)
platforms, devices = (cl.cl_platform_id * count.value)(), (cl.cl_device_id * 1)()
cl.clGetPlatformIDs(count.value, platforms, None)
cl.clGetDeviceIDs(platforms[int(os.environ["PLATFORM_OF_OURS"])], cl.CL_DEVICE_TYPE_ALL, 1, devices, None)
ops_cl.CLDevice.device_ids = devices
from tinygrad import Device
assert Device["CL"].driver_version == os.environ["DRIVER_OF_OURS"], Device["CL"].driver_version
{NETWORK}
Tensor.manual_seed(0)
model = Model()
optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.01)
images, labels = Tensor.randn(batch, 1, 28, 28).realize(), Tensor.randint(batch, high=10).realize()
def step():
    optimizer.zero_grad()
    loss = model(images).sparse_categorical_crossentropy(labels).backward()
    return loss.realize(*optimizer.schedule_step())
jitted = TinyJit(step)
done = Device["CL"].synchronize
for _ in range(3):
    jitted()
"""


def _large(call: str, mark: float | None, setup: str = LARGE, goal: float | None = None, name: str = "") -> Compared:
    return Compared(name or f"{call}, 4 M", "torch", f"{call}; done()", setup, mark, goal)


def _small(call: str) -> Compared:
    """Return a queued case, which waits for the device only between the batches."""
    return Compared(f"{call}, 8 elements, queued", "torch", call, SMALL, limit=9.0, prepare="done()", tune=0.2)


def _pyopencl(name: str, call: str, statement: str, mark: float | None, queued: bool) -> Compared:
    """Return a case compared with ``pyopencl.array``."""
    if queued:
        return Compared(
            name, "pyopencl", call, SMALL, mark, theirs=(statement, PYOPENCL), prepare="done()", tune=0.2
        )  # fmt: skip
    return Compared(name, "pyopencl", f"{call}; done()", LARGE, mark, theirs=(f"{statement}; done()", PYOPENCL))


CASES: list[Compared] = [
    _large("x.exp()", 0.7),
    _large("x.tanh()", 0.7),
    _large("x.log()", 0.7),
    _large("F.gelu(x)", 0.7),
    _large("x.sigmoid()", 1.0),
    _large("x + y", 1.15),
    _large("x * y", 1.15),
    Compared("x.sum(), 4 M, queued", "torch", "for _ in range(5): x.sum()\ndone()", LARGE, 1.2, calls=5),
    _large("x.softmax(1)", 1.0, ROWS, name="softmax, 4096 × 1000"),
    _large("F.layer_norm(x, (columns,), weight, bias)", 0.8, ROWS, name="layer_norm, 4096 × 1000"),
    _large("a @ b", 1.2, MATRICES, 0.9, name="matmul, 1024 × 1024"),
    _large("xp.bmm(p, q)", 1.1, PRODUCTS, 0.9, name="bmm, 64 of 128 × 128"),
    _large("a + b.t()", 1.1, SQUARE, 0.6, name="a + b.t(), 2000 × 2000"),
    _large("F.conv2d(x, frozen, padding=1)", 1.2, IMAGES, name="conv 3×3, 16×64×32×32, forward"),
    _large(
        "xp.autograd.grad(y, w, g, retain_graph=True)", 1.0, IMAGES, name="conv 3×3, 16×64×32×32, backward, weights"
    ),
    _large("step()", 1.3, STEP, 0.9, name="CNN training step, 64 images"),
    _large("step()", 1.1, RESNET_STEP, 0.9, name="ResNet-18 training step, 16×3×32×32"),
    _large("compiled()", 0.75, COMPILED_STEP, 0.6, name="compiled CNN training step, 64 images"),
    _large("compiled()", 0.8, COMPILED_GPT, 0.65, name="compiled GPT training step 4×128, T 64, batch 12, AdamW"),
    _small("x + y"),
    _small("x * 2.0"),
    _small("x.exp()"),
    _small("x.sum()"),
    _small("xp.where(c, x, y)"),
    _small("F.softmax(x, 0)"),
    _small("m @ m"),
    Compared(
        "x + y, 8 elements, until done", "torch", "for _ in range(500): x + y\ndone()", SMALL, calls=500, tune=0.2
    ),
    _pyopencl("x + y, 8 elements, queued", "x + y", "few + few", 0.5, True),
    _pyopencl("x + y, 8 elements, queued; theirs with a pool", "x + y", "few_pooled + few_pooled", None, True),
    _pyopencl("x + y, 4 M", "x + y", "many + many", 0.1, False),
    _pyopencl("x + y, 4 M; theirs with a pool", "x + y", "many_pooled + many_pooled", None, False),
    Compared(
        "CNN training step, 64 images; theirs with its JIT", "tinygrad", "step(); done()", STEP, 0.2,
        theirs=("jitted(); done()", TINYGRAD),
    ),
    Compared(
        "CNN training step, 64 images; theirs without", "tinygrad", "step(); done()", STEP,
        theirs=("step(); done()", TINYGRAD),
    ),
]  # fmt: skip
"""The cases in the order of measurement; those with one setup are adjacent, so that it runs once."""
