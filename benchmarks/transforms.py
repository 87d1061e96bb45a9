"""The cases of function transforms, over ``xp``, like those of :mod:`benchmarks.cases`."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.processor import LIBRARY

FUNC = f"""{LIBRARY}
func = __import__(xp.__name__ + ".func", fromlist=["func"])
vmap, grad, jacrev, functional_call = func.vmap, func.grad, func.jacrev, func.functional_call
jvp, hessian = func.jvp, func.hessian
"""
SMALL = f"""{FUNC}
x = xp.randn(8, 1)
f = vmap(lambda a: (a * 2 + 1).tanh().sum())
"""
MLP = f"""{FUNC}
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
params = {{name: p.detach() for name, p in model.named_parameters()}}
x = xp.randn(8)
f = lambda a: functional_call(model, params, (a,)).sum()
second = jacrev(jacrev(f))
curvature = hessian(f)
"""
FORWARD = f"""{FUNC}
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
params = {{name: p.detach() for name, p in model.named_parameters()}}
x, tangent = xp.randn(64, 784), xp.randn(64, 784)
f = lambda a: functional_call(model, params, (a,))
"""
PER_EXAMPLE = f"""{FUNC}
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
)
params = {{name: p.detach() for name, p in model.named_parameters()}}
x, y = xp.randn(64, 1, 28, 28), xp.randint(0, 10, (64,))
def loss(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))
per_example = vmap(grad(loss), in_dims=(None, 0, 0))
"""
SECTION = "transforms of functions"

TRANSFORMS: list[Case] = [
    Case("vmap of 4 operators, 8 elements", "f(x)", SMALL, 0.7, 0.6, SECTION),
    Case("jacrev(jacrev), MLP 8-16-1", "second(x)", MLP, 1.0, 0.9, SECTION),
    Case("hessian, MLP 8-16-1", "curvature(x)", MLP, 1.0, 0.9, SECTION),
    Case("jvp of an MLP 784-512-512-10, batch 64", "jvp(f, (x,), (tangent,))", FORWARD, 1.0, 0.7, SECTION),
    Case("per-example gradients of a CNN, batch 64", "per_example(params, x, y)", PER_EXAMPLE, 1.0, 0.7, SECTION),
]
"""The cases, with the ratios that must hold."""
