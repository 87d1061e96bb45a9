"""The cases of fused kernels, over ``xp``: compiled functions of candelabra against eager ones of the peer."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.processor import CNN, GPT, LIBRARY, MLP, RESNET

COMPILING, EAGER = "compiled = xp.compile\n", "compiled = lambda f: f\n"
"""The preludes of a side that compiles and of one that does not."""
TEN = f"""{LIBRARY}
x, y = xp.randn(1 << 22), xp.randn(1 << 22)
@compiled
def arithmetic(x, y):
    a = (x * y + x) * 0.5 - y
    return ((a.abs() + 1.0).clamp(0.5, 4.0) * x + y).relu()
@compiled
def functions(x, y):
    a = xp.exp(xp.tanh(x * y + x) * 0.5) - y
    return (xp.sigmoid(a) * x + y).relu()
"""
RESIDUAL = f"""{LIBRARY}
x, residual, g = xp.randn(4096, 512), xp.randn(4096, 512), xp.randn(4096, 512)
norm = nn.LayerNorm(512)
x.requires_grad_(), residual.requires_grad_()
leaves = (x, residual, *norm.parameters())
@compiled
def block(g):
    for leaf in leaves:
        leaf.grad = None
    norm(residual + F.dropout(x, 0.1)).backward(g)
"""
ATTENTION = f"""{LIBRARY}
scores, mask = xp.randn(16, 8, 256, 256), xp.randn(256, 256)
@compiled
def weights(scores):
    return F.softmax(scores * 0.125 + mask, -1)
"""
SQUARES = f"""{LIBRARY}
a, b = xp.randn(1 << 22), xp.randn(1 << 22)
leaf = xp.randn(1 << 22).requires_grad_()
@compiled
def loss(a, b):
    return ((a - b) ** 2).mean()
@compiled
def gradient(b):
    leaf.grad = None
    ((leaf - b) ** 2).mean().backward()
"""
LINEAR = f"""{LIBRARY}
x, w, bias = xp.randn(1024, 512), xp.randn(512, 1024), xp.randn(1024)
@compiled
def activated(x):
    return F.gelu(x @ w + bias)
"""
CLASSES = f"""{LIBRARY}
logits, target = xp.randn(2048, 1000).requires_grad_(), xp.randint(0, 1000, (2048,))
@compiled
def classify(target):
    logits.grad = None
    F.cross_entropy(logits * 0.5, target).backward()
"""
RMS = f"""{LIBRARY}
x = xp.randn(4096, 512)
@compiled
def scaled(x):
    return x * xp.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
"""
SMALL = f"""{LIBRARY}
a, b = xp.randn(8).requires_grad_(), xp.randn(8)
@compiled
def graph():
    a.grad = None
    (a * b + b).sum().backward()
"""
INFERENCE = f"""{RESNET}
model.eval()
image = x[:1].clone()
applied = compiled(model)
def predict():
    with xp.no_grad():
        return applied(image)
"""
SECTION = "compiled functions"


def _whole(setup: str) -> str:
    """Return a setup with its training step compiled."""
    return f"{setup}\nstep = compiled(step)\n"


FUSED: list[Case] = [
    Case("mul, add, sum, backward on 8 elements", "graph()", SMALL, 0.15, 0.1, SECTION),
    Case("compiled MLP step, batch 32, 784-128-10, SGD", "step()", _whole(MLP), 0.5, 0.35, SECTION),
    Case("compiled CNN step, batch 64, 1×28×28", "step()", _whole(CNN), 0.75, 0.6, SECTION),
    Case("compiled GPT step 4×128, T 64, batch 12, AdamW", "step()", _whole(GPT), 0.8, 0.65, SECTION),
    Case("compiled ResNet-18 inference, 1×3×32×32", "predict()", INFERENCE, 1.0, 0.8, SECTION),
    Case("ten arithmetic operators, 4 M", "arithmetic(x, y)", TEN, 0.25, 0.15, SECTION),
    Case("ten operators with exp, tanh, sigmoid, 4 M", "functions(x, y)", TEN, 0.25, 0.15, SECTION),
    Case("layer_norm + residual + dropout and back", "block(g)", RESIDUAL, 0.5, 0.35, SECTION),
    Case("softmax(x * scale + mask), 8 M", "weights(scores)", ATTENTION, 0.5, 0.35, SECTION),
    Case("mean((a - b)**2), 4 M", "loss(a, b)", SQUARES, 0.5, 0.35, SECTION),
    Case("mean((a - b)**2) and back, 4 M", "gradient(b)", SQUARES, 0.75, 0.5, SECTION),
    Case("gelu(x @ w + b), 1024 x 512 x 1024", "activated(x)", LINEAR, 1.0, 0.8, SECTION),
    Case("cross_entropy(x * scale) and back, 2048 x 1000", "classify(target)", CLASSES, 0.75, 0.5, SECTION),
    Case("x * rsqrt(mean(x * x)), 4096 x 512", "scaled(x)", RMS, 0.75, 0.5, SECTION),
]
