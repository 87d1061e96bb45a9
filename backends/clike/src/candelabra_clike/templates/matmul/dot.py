"""Products of a vector and the columns of a matrix on processors, where both are contiguous along the depth.

Four columns are processed at a time, 16 elements each. Nothing is copied, because nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.dtypes import dtype

from candelabra_clike.language import Variable, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.language.simd import lane_of
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import declare_offsets

COLUMNS = 4
"""Columns at a time: with two vectors of sums each, they saturate the multipliers."""
BLOCK = 4096
"""Elements whose products are summed before they are added to the other sums."""


@built("matmul")
def source(d: dtype, rank: int) -> Source:
    """Return the kernel for batches of ``rank`` dims. ``a`` is the vector."""
    k = KernelBuilder(f"matmul_dots_{d.name}_{rank}", wide=True)
    out, a, b = k.writes("out", d), k.reads("a", d), k.reads("b", d)
    starts = {name: k.number(f"{name}_from") for name in "oab"}
    blocks, per_item, n, depth, o_step, b_step = k.numbers("blocks", "per_item", "n", "depth", "o_step", "b_step")
    sizes = k.per_dim("z", rank)
    at = declare_offsets(k, starts, {name: k.per_dim(f"{name}_z", rank) for name in "oab"}, k.item // blocks, sizes)
    first, vector = k.let("first", k.item % blocks * per_item), k.pointer("vector", a, at["a"])
    end = k.let("end", first + least(n - first, per_item))
    with k.loop("j", first, end, COLUMNS) as j:
        # The last column replaces those beyond it.
        columns = [k.pointer("column0", b, at["b"] + j * b_step)]
        for i in range(1, COLUMNS):
            columns.append(k.pointer(f"column{i}", columns[-1], select(j + i < end, b_step, 0)))
        totals = [k.variable(f"total{i}", constant(out.type, 0)) for i in range(COLUMNS)]
        with k.loop("begin", 0, depth, BLOCK) as begin:
            stop = k.let("stop", begin + least(depth - begin, BLOCK))
            whole = k.let("whole", stop - (stop - begin) % 16)
            _add_vectors(k, totals, vector, columns, begin, whole)
            with k.loop("p", whole, stop) as p:
                for total, column in zip(totals, columns):
                    k.assign(total, total + vector[p] * column[p])
        for i, total in enumerate(totals):
            with k.when(j + i < end):
                out[at["o"] + (j + i) * o_step] = total
    return k.source(contract=True)


def _add_vectors(
    k: KernelBuilder, totals: Sequence[Variable], vector: KernelArray, columns: Sequence[KernelArray],
    begin: Variable, end: Variable,
) -> None:  # fmt: skip
    """Add products to the totals of the columns, two vectors of eight at a time."""
    zero, pair = constant(vector.type, 0), range(2)
    sums = [[k.variable(f"sum{i}_{v}", zero, lanes=8) for v in pair] for i in range(COLUMNS)]
    with k.vectors("p", begin, end, lanes=8, together=2) as p:
        x = [k.let(f"x{v}", vector[p + 8 * v]) for v in pair]
        for column, parts in zip(columns, sums):
            for v in pair:
                k.assign(parts[v], parts[v] + x[v] * column[p + 8 * v])
    for i, (total, (low, high)) in enumerate(zip(totals, sums)):
        own = k.let(f"own{i}", low + high)
        fourths = [lane_of(own, lane) + lane_of(own, lane + 4) for lane in range(4)]
        k.assign(total, total + ((fourths[0] + fourths[1]) + (fourths[2] + fourths[3])))
