"""Index arrays in kernels: an element's offset along several dims is read from index arrays and checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.language import INDEX, Value, Variable, cast, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source


class IndexedDim(NamedTuple):
    """The dim that an index array (int64) indexes: its number ``dim``, and ``size`` elements at a distance of ``step``.

    ``strides`` are those of the index array along the dims of the loop nest.
    """

    strides: Shape
    dim: int
    size: int
    step: int


def extent_arguments(indexed: Sequence[IndexedDim]) -> list[int]:
    """Return the arguments of the numbers that :meth:`IndexArrays.add_extents` adds.

    Raises ``IndexError`` for an empty dim: no index is valid.
    """
    if not all(each.size for each in indexed):
        raise IndexError("index out of bounds: an indexed dim is empty")
    return [n for each in indexed for n in (each.dim, each.size, each.step)]


class IndexErrors:
    """The parameters ``errors`` and ``ticket`` of a kernel, and the variables for an index that is out of bounds."""

    def __init__(self, kernel: KernelBuilder) -> None:
        self.kernel = kernel
        self.errors = kernel.writes("errors", "i64")
        self.ticket = kernel.number("ticket", "u32")
        self.wrong: Variable
        """The number of the array that has the index, counted from 1, or 0."""
        self.value: Variable

    def declare(self) -> None:
        """Declare the variables. This stands before the first :meth:`note`."""
        self.wrong = self.kernel.variable("wrong", constant("u32", 0))
        self.value = self.kernel.variable("value", constant("i64", 0))

    def note(self, index: Value) -> None:
        """Keep an index that is out of bounds."""
        self.kernel.assign(self.wrong, 1)
        self.kernel.assign(self.value, index)

    def report(self, dim: Value | int, size: Value) -> None:
        """Report the last of these indices, if there is one, for a dim of a size."""
        dim = cast("i64", dim) if isinstance(dim, Value) else constant("i64", dim)
        with self.kernel.when(self.wrong != 0):
            self.kernel.run("report_error", self.errors, self.ticket, self.value, dim, cast("i64", size))


class IndexArrays:
    """The index arrays ``i0`` … of a kernel, and the errors of their elements.

    With ``wraps``, indices below 0 count from the end.
    """

    def __init__(self, kernel: KernelBuilder, count: int, wraps: bool) -> None:
        self.kernel = kernel
        self.wraps = wraps
        self.arrays = {f"i{j}": kernel.reads(f"i{j}", "i64") for j in range(count)}
        self.errors = IndexErrors(kernel)
        self.dims: list[Variable]
        self.sizes: list[Variable]
        self.steps: list[Variable]

    def add_extents(self) -> None:
        """Add the numbers of the dim that each array indexes: which one it is, its size and its stride."""
        parts = [self.kernel.numbers(*[f"{part}_{name}" for part in ("dim", "size", "step")]) for name in self.arrays]
        self.dims, self.sizes, self.steps = (list(each) for each in zip(*parts))

    def lookup(self, elements: Sequence[Value]) -> tuple[Value, Value, list[Value]]:
        """Declare the offset of an element of the source, or 0 if an index is not valid, and whether all are valid.

        ``elements`` are the indices. Returns the offset, the condition, and the indices counted from the front. There
        is no branch, so that the surrounding loop can be vectorised.
        """
        k, errors = self.kernel, self.errors
        to, good = k.variable("to", constant(INDEX, 0)), k.variable("good", constant("bool", 1))
        found = []
        for j, (element, size, step) in enumerate(zip(elements, self.sizes, self.steps, strict=True), 1):
            given, index = self._index(j, element, size)
            valid = k.let(f"valid{j}", cast("u64", index) < size)
            k.assign(errors.wrong, select(valid, errors.wrong, j))
            k.assign(errors.value, select(valid, errors.value, given))
            k.assign(good, good & valid)
            k.assign(to, to + cast(INDEX, index) * step)
            found.append(index)
        k.assign(to, select(good, to, 0))
        return to, good, found

    def checked_lookup(self, elements: Sequence[Value]) -> tuple[Value, list[Value]]:
        """Declare the offset as :meth:`lookup` does, of indices that are known to be valid."""
        k, to, found = self.kernel, self.kernel.variable("to", constant(INDEX, 0)), []
        for j, (element, size, step) in enumerate(zip(elements, self.sizes, self.steps, strict=True), 1):
            _, index = self._index(j, element, size)
            k.assign(to, to + cast(INDEX, index) * step)
            found.append(index)
        return to, found

    def _index(self, j: int, element: Value, size: Value) -> tuple[Value, Value]:
        """Declare an index as it is, and as counted from the front."""
        given = self.kernel.let(f"given{j}", element)
        wrapped = select(given < 0, given + cast("i64", size), given) if self.wraps else given
        return given, self.kernel.let(f"index{j}", wrapped)

    def report(self) -> None:
        """Report an index that is not valid, after all have been checked."""
        dim: Value = self.dims[-1]
        size: Value = self.sizes[-1]
        for j in range(len(self.arrays) - 1, 0, -1):
            is_this = self.errors.wrong == j
            dim, size = select(is_this, self.dims[j - 1], dim), select(is_this, self.sizes[j - 1], size)
        self.errors.report(dim, size)


CHUNK = 1 << 14
"""Elements of a work-item."""


@lru_cache(1)
@built("index")
def bounds_source() -> Source:
    """Return the kernel: work-item ``g`` writes whether an element of its chunk plus ``shift`` is not below ``end``."""
    k = KernelBuilder("index_check", wide=True)
    out, index, (index_at, n) = k.writes("out", "u32"), k.reads("index", "i64"), k.numbers("index_at", "n")
    shift, end = k.number("shift", "u64"), k.number("end", "u64")
    first = k.let("first", k.item * CHUNK)
    part, wrong = k.pointer("part", index, index_at + first), k.variable("wrong", constant("u32", 0))
    with k.loop("i", 0, k.let("many", cast("u32", least(n - first, CHUNK))), independent=True) as i:
        k.assign(wrong, wrong | select(cast("u64", part[i]) + shift >= end, constant("u32", 0xFFFFFFFF), 0))
    out[k.item] = wrong
    return k.source()


def is_in_bounds(index: StridedArray, size: int, wraps: bool) -> bool:
    """Return whether all elements are from 0, or with ``wraps`` from ``-size``, to ``size - 1``."""
    from candelabra_clike.kernels.copies import contiguous

    if not index.size:
        return True
    engine, flat, items = index.engine, contiguous(index), -(-index.size // CHUNK)
    out = engine.allocate(4 * items)
    shift = size if wraps else 0
    engine.compile(bounds_source())(items, out, flat.buffer, flat.offset, flat.size, shift, size + shift)
    return not any(engine.read(out, 0, 4 * items))
