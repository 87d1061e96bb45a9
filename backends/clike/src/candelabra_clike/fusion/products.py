"""Fused products: a matrix product or a convolution with pointwise nodes after it, see
:mod:`candelabra_clike.templates.matmul.epilogue`.

The partition of the work is that of the product alone, so that its sums have the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides, is_contiguous_layout
from candelabra.graph import FUNCTION, Graph, Node, Spec, packed_operands, values_read
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.engine import Engine
from candelabra_clike.fusion.anchors import Layouts, Nodes, Tensors, draws
from candelabra_clike.kernels.convolution import ConvGeometry, Padding, convolution_inputs, forward_filters
from candelabra_clike.kernels.matmul import DIRECT
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.convolutions.convolution import Weight
from candelabra_clike.templates.convolutions.fused import ConvolutionWithEpilogue, Planned
from candelabra_clike.templates.convolutions.packed import PackedFilters
from candelabra_clike.templates.copies.packing import layout_padded, padded
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule, NotContiguous
from candelabra_clike.templates.elementwise.loops import stride_kind
from candelabra_clike.templates.matmul.epilogue import Epilogue, MatmulWithEpilogue
from candelabra_clike.templates.matmul.packing import StridedRows

FEW_ROWS, FEW_COLUMNS = 4, 8
"""Products of fewer rows or columns have kernels of their own."""


@dataclass(frozen=True)
class ProductNode:
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

    def target(self, writes: Tensors) -> Tensor | None:
        """Return the result of a group into which the product is summed, or None if there is none with its layout."""
        spec = self.spec
        fitting = [v for v in writes if v.spec and (v.spec.dtype, v.spec.strides) == (spec.dtype, spec.strides)]
        return self.result if self.result in fitting else next(iter(fitting), None)

    def suits(self, nodes: Nodes, reads: Tensors, writes: Tensors, serial: bool) -> bool:
        """Return whether one kernel can compute a product, or a convolution, and pointwise nodes.

        No node computes an operand of the product, and the pointwise nodes have its shape.
        """
        pointwise = [node for node in nodes if node is not self.node]
        others = [v for node in pointwise for v in node.results]
        if any(v in self.operands for v in others) or self.target(writes) is None:
            return False
        placed = [*values_read(pointwise), *[v for v in writes if v in others]]
        if any(v.spec is not None and not self.addresses(v.spec) for v in placed):
            return False
        shape = self.spec.shape
        if any(v.spec is not None and v.spec.shape != shape and (v in writes or v.spec.numel != 1) for v in others):
            return False
        return not draws(nodes)

    def schedule(
        self, engine: Engine, epilogue: Epilogue, outputs: Tensors, layouts: Layouts, wide: bool
    ) -> ElementwiseSchedule:
        """Return the launch of a fused product."""
        shape = self.spec.shape
        given = dict(zip(list(epilogue.arrays)[len(outputs) :], layouts, strict=True))
        operands = [given[name] for role, name in epilogue.roles.items() if role in self.roles]
        depth = operands[0][0][-1]
        if self.node.name.startswith("linear"):
            operands[1] = tuple(reversed(operands[1][0])), tuple(reversed(operands[1][1]))
        *batch, m, n = shape
        targets = ((*batch, m, depth), (*batch, depth, n), shape)
        strides = [broadcast_layout(*layout, to) for layout, to in zip(operands, targets)]
        written = {name: v.spec.strides for name, v in zip(epilogue.arrays, outputs) if v.spec is not None}
        placed = [written[p] if p in written else broadcast_layout(*given[p], shape) for p in epilogue.addressed]
        kernel = MatmulWithEpilogue(
            self.spec.dtype, epilogue, {name: stride_kind(row[-1]) for name, row in zip(epilogue.addressed, placed)}
        )
        furthest = max(
            extent(to, row) for to, row in zip((*targets[: len(strides)], *[shape] * len(placed)), (*strides, *placed))
        )
        wide = wide or max(furthest, prod(shape)) >= WIDE
        plan = kernel.launch(engine, shape, depth, (*strides, *placed), wide)
        return ElementwiseSchedule(plan.launch, plan.items, plan.numbers, sys.maxsize if wide else WIDE - 1 - furthest)


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


@dataclass(frozen=True)
class ConvolutionNode(ProductNode):
    """A node that convolves ``x`` with ``w``. The operands are the images, the filters and the bias, if any, which is
    contiguous.
    """

    geometry: ConvGeometry
    packed: Tensor | None
    """The packed filters, which the kernel reads in place of the others if the graph has packed them."""

    @property
    def roles(self) -> dict[str, Tensor]:
        """The operands by their names in the kernel."""
        roles = dict(zip(("x", "w", "bias"), self.operands))
        return roles if self.packed is None else {**roles, "packed": self.packed}

    def addresses(self, spec: Spec) -> bool:
        """Return whether the kernel can address an operand of the pointwise nodes."""
        try:
            channel_step(spec.shape, spec.strides, self.spec.shape)
        except NotContiguous:
            return False
        return True

    def schedule(
        self, engine: Engine, epilogue: Epilogue, outputs: Tensors, layouts: Layouts, wide: bool
    ) -> ElementwiseSchedule:
        """Return the launch of a fused convolution.

        Raises :class:`NotContiguous` for arrays of other layouts than the kernel takes.
        """
        shape = self.spec.shape
        inputs = dict(zip(list(epilogue.arrays)[len(outputs) :], layouts, strict=True))
        steps = {name: channel_step(*inputs[name], shape) for name in epilogue.addressed if name in inputs}
        if "bias" in epilogue.roles and not is_contiguous_layout(*inputs[epilogue.roles["bias"]]):
            raise NotContiguous
        per_channel = {name: step for name, step in steps.items() if step >= 0}
        kernel = ConvolutionWithEpilogue(self.spec.dtype, len(shape) - 2, epilogue, per_channel)
        furthest = max(prod(shape), *[extent(*layout) for layout in layouts])
        wide = wide or engine.traits.serial or furthest >= WIDE
        launch = ConvolutionLaunch(engine, self, kernel, layouts, len(outputs), wide).compiled()
        return ElementwiseSchedule(launch, 1, (), sys.maxsize if wide else WIDE - 1 - furthest)


def convolution_node(node: Node) -> ConvolutionNode | None:
    """Return a node as a convolution, or None if it is none that fuses."""
    if isinstance(node.op, Graph) or node.form != FUNCTION or node.op.name != "conv":
        return None
    spec = node.results[0].spec
    x, w, bias, stride, padding, dilation, groups = node.args[:7]
    if spec is None or spec.dtype not in DIRECT or not spec.numel or spec.strides != contiguous_strides(spec.shape):
        return None
    operands = tuple(v for v in (x, w, bias) if v is not None)
    specs = [v.spec for v in operands]
    if any(s is None or s.dtype is not spec.dtype or not s.numel for s in specs):
        return None
    if bias is not None and not is_contiguous_layout(bias.spec.shape, bias.spec.strides):
        return None
    geometry = ConvGeometry(tuple(stride), tuple(padding), tuple(dilation), groups)
    return ConvolutionNode(node, operands, spec, geometry, next(iter(packed_operands(node)), None))


def channel_step(shape: Shape, strides: Shape, target: Shape) -> int:
    """Return the stride along the channels of an operand that has one element per channel, or one at all; -1 for an
    operand with the layout of the result. Raises :class:`NotContiguous` for other layouts.
    """
    steps = broadcast_layout(shape, strides, target)
    if steps == contiguous_strides(target):
        return -1
    if any(step for dim, step in enumerate(steps) if dim != 1):
        raise NotContiguous
    return steps[1]


class ConvolutionLaunch(NamedTuple):
    """The launch of a fused convolution, which takes the buffers and offsets of the group's arrays."""

    engine: Engine
    anchor: ConvolutionNode
    kernel: ConvolutionWithEpilogue
    layouts: Sequence[tuple[Shape, Shape]]
    outputs: int
    wide: bool

    def __call__(self, items: Any, /, *arguments: Any) -> None:
        x, w = self._array("x", arguments), self._weight(arguments)
        source, filters, (kernel, plan) = self._planned(x, w, padded)
        kernel.run(self.engine, plan, w, filters, source, self.wide, arguments)

    def compiled(self) -> ConvolutionLaunch:
        """Return the launch, with its kernel compiled."""
        nothing = (None,) * len(self.kernel.epilogue.arrays) + (0,) * len(self.kernel.epilogue.arrays)
        x, w = self._array("x", nothing), self._weight(nothing)
        _, _, (kernel, plan) = self._planned(x, w, layout_padded)
        kernel.launch(self.engine, plan, self.wide)
        return self

    def _planned(self, x: StridedArray, w: Weight, pad: Padding) -> tuple[StridedArray, StridedRows, Planned]:
        """Return the padded images, the filters, and the kernel with its plan."""
        shape, strides = self.anchor.spec.shape, self.anchor.spec.strides
        source, filters, patches, results, slack = convolution_inputs(
            x, w, shape[2:], strides, self.anchor.geometry, pad
        )
        return source, filters, self.kernel.plan(self.engine, filters.rows, patches, results, slack)

    def _weight(self, arguments: Sequence[Any]) -> Weight:
        anchor = self.anchor
        if anchor.packed is None:
            return self._array("w", arguments)
        spec = anchor.operands[1].spec
        assert spec is not None
        filters = forward_filters(PackedFilters(spec.shape, {}), anchor.geometry.groups)
        return PackedFilters(spec.shape, {filters: self._array("packed", arguments)})

    def _array(self, role: str, arguments: Sequence[Any]) -> StridedArray:
        epilogue = self.kernel.epilogue
        position = list(epilogue.arrays).index(epilogue.roles[role])
        shape, strides = self.layouts[position - self.outputs]
        offset = arguments[len(epilogue.arrays) + position]
        contiguous = is_contiguous_layout(shape, strides)
        return StridedArray(
            self.engine, arguments[position], shape, strides, offset, self.anchor.spec.dtype, prod(shape), contiguous
        )
