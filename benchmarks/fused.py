"""The cases of fused kernels, over ``xp``: compiled functions of candelabra against eager ones of the peer."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.processor import LIBRARY

COMPILED = f"""{LIBRARY}
compiled = (lambda f: f) if xp.__name__ == "torch" else xp.compile
"""
TEN = f"""{COMPILED}
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
RESIDUAL = f"""{COMPILED}
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
SECTION = "compiled functions"

FUSED: list[Case] = [
    Case("ten arithmetic operators, 4 M", "arithmetic(x, y)", TEN, 0.25, 0.15, SECTION),
    Case("ten operators with exp, tanh, sigmoid, 4 M", "functions(x, y)", TEN, 0.25, 0.15, SECTION),
    Case("layer_norm + residual + dropout and back", "block(g)", RESIDUAL, 0.5, 0.35, SECTION),
]
