"""Programs of pointwise operators, for tests that compare fused kernels with single ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.graph import Graph, compile_graph, trace
from candelabra.testing import assert_close
from candelabra_clike.fusion import fused

Program = Callable[..., Any]
SEED = 11


def chain(x: Tensor, y: Tensor) -> Tensor:
    return cd.relu(cd.tanh(cd.exp(-(x * y + x)) * 0.5 + y) - y)


def several_outputs(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    product = x * y
    activated = F.gelu(product + 1.5)
    return product, activated, cd.sigmoid(activated) * (1 - activated)


def selections(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    larger = x > y
    chosen = cd.where(larger, x, y * 2)
    return larger, cd.logical_not(larger) | (chosen == chosen), chosen.clamp(-0.5, 0.75)


def casts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    whole = (x * 10).to(cd.int32) + 3
    return whole, whole.to(cd.float64) / 7, (whole > 0).to(x.dtype) * y, (x + y).to(cd.float16).to(cd.float32) * 3


def powers(x: Tensor, y: Tensor) -> Tensor:
    return (x**2 + y**2).sqrt() + (x.abs() + 1) ** 1.5


FLOATING: dict[str, Program] = {
    "chain": chain, "several_outputs": several_outputs, "selections": selections, "casts": casts, "powers": powers,
}  # fmt: skip


def integers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    wrapped = x * y * 77 - 5
    return wrapped, (wrapped & y) ^ x, cd.maximum(wrapped, x).sign(), wrapped << 2


def complex_numbers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    product = x * y + (1 - 2j)
    return product, cd.exp(product * 0.1) / y, product == product


def numbers(shape: tuple[int, ...], d: dtype, device: cd.device, offset: int = 0) -> Tensor:
    """Return numbers of a dtype from a seed: negative ones, too, if the dtype has them."""
    generator = cd.Generator("cpu").manual_seed(SEED + offset)
    if d.is_complex:
        return cd.randn(shape, generator=generator, dtype=d, device="cpu").to(device)
    if d.is_floating_point:
        return cd.randn(shape, generator=generator, device="cpu").to(d).to(device)
    return cd.randint(0 if not d.is_signed else -90, 90, shape, generator=generator, device="cpu").to(d).to(device)


def groups(graph: Graph) -> list[int]:
    """Return the number of nodes of each fused kernel."""
    return [len(node.op.nodes) for node in fused(graph).nodes if isinstance(node.op, Graph)]


def check(program: Program, *tensors: Tensor) -> Graph:
    """Check that the compiled graph of a program gives the results of the program, and return the graph."""
    graph = trace(program, *tensors)
    assert groups(graph)
    run = compile_graph(graph)
    for _ in range(2):
        payloads = run(*[t._payload for t in tensors])
        expected = program(*tensors)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for payload, value in zip(payloads, expected, strict=True):
            got = cd.empty_like(value)
            got._payload = payload
            assert (got.dtype, got.shape, got.stride()) == (value.dtype, value.shape, value.stride())
            assert_close(got, value, equal_nan=True)
    return graph
