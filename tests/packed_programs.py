"""Convolutions whose weights a compiled function packs before its graph, for the tests of several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import candelabra.nn.functional as F
from candelabra._compile.calling import CompiledFunction
from candelabra.dtypes import dtype
from candelabra.graph import Graph

from tests.fused_programs import numbers

Convolution = Callable[[cd.Tensor, cd.Tensor, "cd.Tensor | None"], cd.Tensor]


class Case(NamedTuple):
    """A convolution, the shapes of its input and weight, the size of its bias or 0, and how often it packs."""

    function: Convolution
    input: tuple[int, ...]
    weight: tuple[int, ...]
    bias: int = 0
    layouts: int = 1


def conv(dims: int, **options: Any) -> Convolution:
    """A convolution in some dims."""
    function: Any = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    return lambda x, w, b: function(x, w, b, **options)


def transposed(dims: int, **options: Any) -> Convolution:
    """A transposed convolution in some dims."""
    function: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
    return lambda x, w, b: function(x, w, b, **options)


CASES: dict[str, Case] = {
    "1d": Case(conv(1), (3, 4, 19), (17, 4, 5), 17),
    "2d": Case(conv(2, padding=1), (2, 3, 9, 10), (21, 3, 3, 3), 21),
    "2d, one filter": Case(conv(2), (2, 3, 9, 10), (1, 3, 3, 3)),
    "3d": Case(conv(3, padding=(1, 0, 2)), (2, 3, 5, 6, 7), (10, 3, 2, 3, 3)),
    "strides": Case(conv(2, stride=(2, 3), padding=2), (2, 3, 12, 11), (8, 3, 3, 4), 8),
    "dilation": Case(conv(2, dilation=(3, 2)), (2, 3, 12, 11), (8, 3, 3, 3)),
    "groups": Case(conv(2, groups=3, padding=1), (2, 6, 8, 7), (15, 2, 3, 3), 15),
    "depthwise": Case(conv(1, groups=5), (2, 5, 11), (10, 1, 3)),
    "1x1": Case(conv(2), (2, 16, 8, 8), (9, 16, 1, 1), 9),
    "few positions": Case(conv(2), (7, 4, 3, 3), (6, 4, 3, 3)),
    "transposed 1d": Case(transposed(1), (3, 4, 9), (4, 7, 5), 7),
    "transposed, strides": Case(transposed(2, stride=2, output_padding=1), (2, 6, 5, 4), (6, 9, 3, 3), 0, 4),
    "transposed, groups, dilation": Case(transposed(2, groups=2, dilation=2), (2, 6, 5, 4), (6, 3, 3, 3)),
    "transposed 3d": Case(transposed(3, stride=(1, 2, 1)), (2, 3, 3, 4, 3), (3, 5, 2, 2, 2), 0, 2),
    "transposed, strides beyond the taps": Case(transposed(2, stride=3), (2, 3, 4, 4), (3, 5, 1, 1), 0, 4),
    "transposed, one position": Case(transposed(2), (3, 8, 1, 1), (8, 6, 4, 4), 6),
}


def graph_of(compiled: Any) -> Graph:
    """The graph of a compiled function with one program."""
    assert isinstance(compiled, CompiledFunction)
    [program] = compiled.programs
    [graph] = program.graphs
    return graph


def check(name: str, d: dtype, device: cd.device) -> None:
    """Compile a convolution with a captured weight: it has the bits of the eager call, also after each kind of write.

    The compiled function runs the kernels of the eager call on the same packed filters.
    """
    case = CASES[name]
    x, w = numbers(case.input, d, device, 1), numbers(case.weight, d, device, 2)
    b = numbers((case.bias,), d, device, 3) if case.bias else None
    compiled = cd.compile(lambda x: case.function(x, w, b), fullgraph=True)
    for write in (None, lambda: w.mul_(2), lambda: w.data.sub_(1), lambda: w.view(-1)[0:1].fill_(3), None):
        if write is not None:
            write()
        for _ in range(2):
            assert (compiled(x) == case.function(x, w, b)).all()
    graph = graph_of(compiled)
    assert [node.name for node in graph.prepared] == ["packed"] * case.layouts
    assert "once for each version" in str(graph)
