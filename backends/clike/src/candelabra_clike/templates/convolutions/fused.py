"""Convolutions with an epilogue: the parameters of their kernel, and its launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.source import Source, number, reads
from candelabra_clike.templates.convolutions import panels
from candelabra_clike.templates.convolutions import tiled as conv_tiled
from candelabra_clike.templates.convolutions.convolution import (
    ConvolutionKernel,
    ConvolutionPlan,
    OutputLayout,
    Patches,
    Weight,
    plan_parameters,
)
from candelabra_clike.templates.convolutions.panels import OutputTiling
from candelabra_clike.templates.elementwise.loops import HOISTED
from candelabra_clike.templates.matmul import tiled as matmul_tiled
from candelabra_clike.templates.matmul.epilogue import OUT, Epilogue
from candelabra_clike.templates.matmul.micro_kernel import MicroTile
from candelabra_clike.templates.matmul.packing import StridedRows
from candelabra_clike.types import CTYPES

COPIED = ("w", "x")
"""The operands that the kernel reads as packed filters and padded images."""
PACKED = "packed"
"""The filters that were packed before, which the kernel reads as ``w``."""


class ConvolutionWithEpilogue(ConvolutionKernel):
    """``epilogue(conv(x, w) + bias)`` with contiguous results.

    ``channel_steps`` has the strides of the addressed arrays that have one element per channel, or one at all (0). The
    others have the layout of the results.
    """

    def __init__(self, d: dtype, rank: int, epilogue: Epilogue, channel_steps: Mapping[str, int]) -> None:
        super().__init__(d, rank, "bias" in epilogue.roles)
        self.epilogue = epilogue
        self.channel_steps = channel_steps
        self._plans: dict[Any, ConvolutionPlan] = {}

    def of_rank(self, rank: int) -> ConvolutionKernel:
        """Return the kernel for patches of another rank."""
        return ConvolutionWithEpilogue(self.dtype, rank, self.epilogue, self.channel_steps)

    def plan(self, engine: Engine, rows: int, patches: Patches, results: OutputLayout, slack: bool) -> Planned:
        """Return the plan of a convolution, and its kernel."""
        key = (engine, rows, patches, results, slack)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self.merged(engine, rows, patches, results, slack)
        assert isinstance(plan.kernel, ConvolutionWithEpilogue)
        return plan.kernel, plan

    def run(
        self, engine: Engine, plan: ConvolutionPlan, w: Weight, filters: StridedRows, x: StridedArray, wide: bool,
        arguments: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Convolve. ``arguments`` are buffers and offsets of all arrays, and numbers."""
        count = 2 * len(self.epilogue.arrays)
        launch = self.launch(engine, plan, wide)
        left = self.filters(engine, plan, w, filters)
        steps = self.channel_steps.values()
        launch(plan.items, left, x.buffer, *arguments[:count], *plan.numbers, *steps, *arguments[count:])

    def source(self, engine: Engine, tile: MicroTile, tiling: OutputTiling, wide: bool) -> Source:
        """Return the kernel for the device."""
        epilogue, memory, serial = self.epilogue, CTYPES[self.dtype], engine.traits.serial
        head = (
            *[reads(n, memory.memory) for n in COPIED],
            *epilogue.buffers(),
            *epilogue.offsets(),
            *plan_parameters(self.rank, serial),
            *[number(f"{name}_channel") for name in self.channel_steps],
            *epilogue.scalars(),
        )
        renamed = epilogue.renamed({OUT: "o_from", "bias": "bias_from"}, (*COPIED, PACKED))
        if serial:
            body = panels.body(tile, memory, tiling, self.rank, self.bias, self._over_tile(tile))
            return Source(epilogue.nest.name, head, renamed + body, wide=wide, contract=True)
        body = conv_tiled.body(memory, self.value, self.rank, self.bias, self._on_element)
        return Source(epilogue.nest.name, head, renamed + body, group=matmul_tiled.GROUP, wide=wide, contract=True)

    def _offsets(self) -> dict[str, str]:
        """Return the offset of an element of each array, in ``row``, ``index`` elements after the first result."""
        offsets = {OUT: "o_from + index", **{n: f"{n}_from + index" for n in self.epilogue.addressed}}
        return offsets | {n: f"{n}_from + (group * m + row) * {n}_channel" for n in self.channel_steps}

    def _over_tile(self, tile: MicroTile) -> str:
        """Return statements that run the epilogue over the rows and pieces of a tile."""
        kinds = dict.fromkeys(self.channel_steps, HOISTED)
        starts = self._offsets()
        steps = dict.fromkeys(starts, "result_step")
        return (
            "for (INDEX row = m0; row < m0 + rows_here; ++row) for (INDEX q = 0; q < pieces; ++q) {\n"
            "const INDEX width = piece_size[q];\n"
            "const INDEX index = image * o_image_step + (group * m + row) * o_row + piece_to[q];\n"
            f"{self.epilogue.over_row(starts, steps, kinds, tile.columns)}}}\n"
        )

    def _on_element(self, result: str) -> str:
        """Return statements that run the epilogue on one element."""
        index = "const INDEX index = image * o_image_step + (group * m + row) * o_row + to;\n"
        return index + self.epilogue.on_element(self._offsets(), result)


Planned = tuple[ConvolutionWithEpilogue, ConvolutionPlan]
"""A kernel and its plan. The kernel has another rank where images are processed as one image."""
