"""The work of :mod:`benchmarks.fused` in tinygrad, on its device for processors, with its JIT."""

from __future__ import annotations

LIBRARY = """
from tinygrad import Device, Tensor, TinyJit, nn
def done():
    Device[Device.DEFAULT].synchronize()
"""
DESCENT = """
optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.01)
@TinyJit
def descend():
    optimizer.zero_grad()
    model(x).sparse_categorical_crossentropy(y).backward()
    optimizer.step()
def step():
    descend()
    done()
for _ in range(3):
    step()
"""
SMALL = f"""{LIBRARY}
a, b = Tensor.randn(8).realize(), Tensor.randn(8).realize()
@TinyJit
def derive(a, b):
    return (a * b + b).sum().gradient(a)[0].realize()
def graph():
    derive(a, b)
    done()
for _ in range(3):
    graph()
"""
MLP = f"""{LIBRARY}
class Model:
    def __init__(self):
        self.first, self.last = nn.Linear(784, 128), nn.Linear(128, 10)
    def __call__(self, x):
        return self.last(self.first(x).relu())
model = Model()
x, y = Tensor.randn(32, 784).realize(), Tensor.randint(32, high=10).realize()
{DESCENT}"""
NETWORK = """
class Model:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.last = nn.Linear(64 * 7 * 7, 10)
    def __call__(self, x):
        x = self.first(x).relu().max_pool2d()
        return self.last(self.second(x).relu().max_pool2d().flatten(1))
"""
CNN = f"""{LIBRARY}{NETWORK}
model = Model()
x, y = Tensor.randn(64, 1, 28, 28).realize(), Tensor.randint(64, high=10).realize()
{DESCENT}"""
TEN = f"""{LIBRARY}
x, y = Tensor.randn(1 << 22).realize(), Tensor.randn(1 << 22).realize()
@TinyJit
def compiled_arithmetic(x, y):
    a = (x * y + x) * 0.5 - y
    return ((a.abs() + 1.0).clip(0.5, 4.0) * x + y).relu().realize()
@TinyJit
def compiled_functions(x, y):
    a = ((x * y + x).tanh() * 0.5).exp() - y
    return (a.sigmoid() * x + y).relu().realize()
def arithmetic():
    compiled_arithmetic(x, y)
    done()
def functions():
    compiled_functions(x, y)
    done()
for _ in range(3):
    arithmetic(), functions()
"""

TINYGRAD: dict[str, tuple[str, str]] = {
    "mul, add, sum, backward on 8 elements": (SMALL, "graph()"),
    "compiled MLP step, batch 32, 784-128-10, SGD": (MLP, "step()"),
    "compiled CNN step, batch 64, 1×28×28": (CNN, "step()"),
    "ten arithmetic operators, 4 M": (TEN, "arithmetic()"),
    "ten operators with exp, tanh, sigmoid, 4 M": (TEN, "functions()"),
}
"""The setup and the statement, by the name of the case."""
