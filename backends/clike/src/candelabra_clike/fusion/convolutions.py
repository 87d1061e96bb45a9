"""Fused convolutions: a convolution with pointwise nodes after it, see
:mod:`candelabra_clike.templates.matmul.epilogue`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides, is_contiguous_layout
from candelabra.graph import FUNCTION, Graph, Node, Spec, packed_operands
from candelabra.graph import Value as Tensor

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.convolution import ConvGeometry, Padding, convolution_inputs, forward_filters
from candelabra_clike.kernels.matmul import DIRECT
from candelabra_clike.layouts import WIDE, broadcast_layout
from candelabra_clike.templates.convolutions.convolution import Weight
from candelabra_clike.templates.convolutions.fused import ConvolutionWithEpilogue, Planned
from candelabra_clike.templates.convolutions.packed import PackedFilters
from candelabra_clike.templates.copies.packing import layout_padded, padded
from candelabra_clike.templates.elementwise.elementwise import ElementwiseSchedule, NotContiguous
from candelabra_clike.templates.matmul.epilogue import Epilogue
from candelabra_clike.templates.matmul.packing import StridedRows


class ConvolutionNode(NamedTuple):
    """A node that convolves ``x`` with ``w``; the bias, if any, is contiguous."""

    node: Node
    operands: tuple[Tensor, ...]
    """The images, the filters and the bias, if any."""
    spec: Spec
    geometry: ConvGeometry
    packed: Tensor | None
    """The packed filters, which the kernel reads in place of the others if the graph has packed them."""

    @property
    def result(self) -> Tensor:
        """The convolution."""
        return self.node.results[0]

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


def convolution_schedule(
    engine: Engine,
    anchor: ConvolutionNode,
    epilogue: Epilogue,
    outputs: Sequence[Tensor],
    layouts: Sequence[tuple[Shape, Shape]],
    wide: bool,
) -> ElementwiseSchedule:
    """Return the launch of a fused convolution, see :func:`~candelabra_clike.fusion.products.product_schedule`.

    Raises :class:`NotContiguous` for arrays of other layouts than the kernel takes.
    """
    shape = anchor.spec.shape
    inputs = dict(zip(list(epilogue.arrays)[len(outputs) :], layouts, strict=True))
    steps = {name: channel_step(*inputs[name], shape) for name in epilogue.addressed if name in inputs}
    if "bias" in epilogue.roles and not is_contiguous_layout(*inputs[epilogue.roles["bias"]]):
        raise NotContiguous
    per_channel = {name: step for name, step in steps.items() if step >= 0}
    kernel = ConvolutionWithEpilogue(anchor.spec.dtype, len(shape) - 2, epilogue, per_channel)
    furthest = max(prod(shape), *[extent(*layout) for layout in layouts])
    wide = wide or engine.traits.serial or furthest >= WIDE
    launch = ConvolutionLaunch(engine, anchor, kernel, layouts, len(outputs), wide).compiled()
    return ElementwiseSchedule(launch, 1, (), sys.maxsize if wide else WIDE - 1 - furthest)
