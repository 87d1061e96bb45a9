"""Fused products: a matrix product with pointwise nodes after it, see
:mod:`candelabra_clike.templates.matmul.epilogue`.

The partition of the work is that of the product alone, so that its sums have the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.graph import FUNCTION, Graph, Node, Spec, values_read
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, extent
from candelabra_clike.engine import Engine
from candelabra_clike.fusion.convolutions import ConvolutionNode, convolution_node
from candelabra_clike.kernels.matmul import DIRECT
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule
from candelabra_clike.templates.matmul.epilogue import Epilogue
from candelabra_clike.templates.matmul.fused import MatmulWithEpilogue, kinds_along_columns

FEW_ROWS, FEW_COLUMNS = 4, 8
"""Products of fewer rows or columns have kernels of their own."""


class ProductNode(NamedTuple):
    """A node that computes ``left @ right``, or ``left @ right.T + bias`` if it is a linear layer."""

    node: Node
    operands: tuple[Tensor, ...]
    """Left, right and the bias, if any."""
    spec: Spec

    @property
    def result(self) -> Tensor:
        """The product."""
        return self.node.results[0]

    @property
    def roles(self) -> dict[str, Tensor]:
        """The operands by their names in the kernel."""
        return dict(zip(("a", "b", "start"), self.operands))

    def addresses(self, spec: Spec) -> bool:
        """Return whether the kernel can address an operand of the pointwise nodes."""
        return True


def product_node(node: Node) -> ProductNode | None:
    """Return a node as a product, or None if it is none that fuses."""
    if isinstance(node.op, Graph) or node.form != FUNCTION or node.op.name not in ("matmul", "linear"):
        return None
    spec, operands = node.results[0].spec, tuple(v for v in node.args if v is not None)
    specs = [v.spec for v in operands if isinstance(v, Tensor)]
    if spec is None or spec.dtype not in DIRECT or not spec.numel or len(spec.shape) < 2:
        return None
    if any(s is None or s.dtype is not spec.dtype or len(s.shape) < 2 for s in specs[:2]):
        return None
    if spec.strides != contiguous_strides(spec.shape) or not operands[0].spec.shape[-1]:
        return None
    rows = prod(spec.shape[:-1]) if node.op.name == "linear" else spec.shape[-2]
    return ProductNode(node, operands, spec) if rows >= FEW_ROWS and spec.shape[-1] >= FEW_COLUMNS else None


Anchor = ProductNode | ConvolutionNode
"""The node of a group whose kernel the others join."""


def products_in(nodes: Sequence[Node]) -> list[Anchor]:
    """Return the products and convolutions among nodes."""
    return [anchor for node in nodes if (anchor := product_node(node) or convolution_node(node)) is not None]


def target(anchor: Anchor, writes: Sequence[Tensor]) -> Tensor | None:
    """Return the result of a group into which the product is summed, or None if there is none with its layout."""
    spec = anchor.spec
    fitting = [v for v in writes if v.spec and (v.spec.dtype, v.spec.strides) == (spec.dtype, spec.strides)]
    return anchor.result if anchor.result in fitting else next(iter(fitting), None)


def suits(anchor: Anchor, nodes: Sequence[Node], writes: Sequence[Tensor]) -> bool:
    """Return whether one kernel can compute a product, or a convolution, and pointwise nodes.

    No node computes an operand of the product, and the pointwise nodes have its shape.
    """
    pointwise = [node for node in nodes if node is not anchor.node]
    others = [v for node in pointwise for v in node.results]
    if any(v in anchor.operands for v in others) or target(anchor, writes) is None:
        return False
    placed = [*values_read(pointwise), *[v for v in writes if v in others]]
    if any(v.spec is not None and not anchor.addresses(v.spec) for v in placed):
        return False
    shape = anchor.spec.shape
    if any(v.spec is not None and v.spec.shape != shape and (v in writes or v.spec.numel != 1) for v in others):
        return False
    return not any(not isinstance(node.op, Graph) and node.op.random for node in nodes)


def product_schedule(
    engine: Engine,
    anchor: ProductNode,
    epilogue: Epilogue,
    outputs: Sequence[Tensor],
    layouts: Sequence[tuple[Shape, Shape]],
    wide: bool,
) -> ElementwiseSchedule:
    """Return the launch of a fused product. ``outputs`` are those of the group, ``layouts`` the shapes and strides of
    its arrays.
    """
    shape = anchor.spec.shape
    given = dict(zip(list(epilogue.arrays)[len(outputs) :], layouts, strict=True))
    operands = [given[name] for role, name in epilogue.roles.items() if role in anchor.roles]
    depth = operands[0][0][-1]
    if anchor.node.name.startswith("linear"):
        operands[1] = tuple(reversed(operands[1][0])), tuple(reversed(operands[1][1]))
    *batch, m, n = shape
    targets = ((*batch, m, depth), (*batch, depth, n), shape)
    strides = [broadcast_layout(*layout, to) for layout, to in zip(operands, targets)]
    written = {name: v.spec.strides for name, v in zip(epilogue.arrays, outputs) if v.spec is not None}
    placed = [written[p] if p in written else broadcast_layout(*given[p], shape) for p in epilogue.addressed]
    kernel = MatmulWithEpilogue(anchor.spec.dtype, epilogue, kinds_along_columns(epilogue.addressed, placed))
    furthest = max(
        extent(to, row) for to, row in zip((*targets[: len(strides)], *[shape] * len(placed)), (*strides, *placed))
    )
    wide = wide or max(furthest, prod(shape)) >= WIDE
    plan = kernel.launch(engine, shape, depth, (*strides, *placed), wide)
    return ElementwiseSchedule(plan.launch, plan.items, plan.numbers, sys.maxsize if wide else WIDE - 1 - furthest)
