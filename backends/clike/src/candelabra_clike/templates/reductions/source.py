"""The common parts of the sources of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.elementwise.loops import LoopNest
from candelabra_clike.templates.index_walker import offset_lines
from candelabra_clike.templates.reduction_dims import ReductionForm
from candelabra_clike.templates.reductions.fold import TypedFold, is_vector_fold
from candelabra_clike.types import CType

PART = (
    "const INDEX from = part * per_part < units ? part * per_part : units;\n"
    "const INDEX to = units - from < per_part ? units : from + per_part;\n"
)
"""Statements for the range of units of a part; the range of the last part may be empty."""


class ReductionSourceBuilder:
    """The sources of one fold over one type of element. Without a ``store`` type, they store the totals themselves.

    The elements are those of an array ``a``, or with a ``producer`` the first values of its loop nest, which also
    writes its other outputs. A serial work-item computes a strip of them in private memory and reduces that, so that
    the order of additions is that of an array; a lane computes each when it needs it.
    """

    def __init__(
        self, name: str, fold: TypedFold, element: CType, store: CType | None, producer: LoopNest | None = None
    ) -> None:
        self.name = name
        self.fold = fold
        self.element = element
        self.store = store
        self.producer = producer
        self.vectorizes = is_vector_fold(fold, element)
        self.names = ("a",) if producer is None else producer.names[1:]
        """The arrays that the kernel addresses element by element."""

    @property
    def buffers(self) -> tuple[KernelParameter, ...]:
        """The parameters that are buffers."""
        result = writes("result", self.store.memory if self.store else self.fold.total)
        nest = self.producer
        if nest is None:
            return (result, reads("a", self.element.memory))
        written = [writes(n, nest.memory[n]) for n in nest.written[1:]]
        return (result, *written, *[reads(n, nest.memory[n]) for n in nest.read])

    # -- offsets ------------------------------------------------------------------------------------------------------
    def row(self, rank: int, begin: str = "") -> str:
        """Return statements for the offset ``a_row`` … of output ``o``, along the first ``rank`` kept dims. ``begin``
        is a column to begin with, ``{}`` standing for an array.
        """
        starts = [f"INDEX {n}_row = {n}_at{begin.format(n)};" for n in self.names]
        return _joined([*starts, *offset_lines(self.names, rank, "o", "k", "_k", "_row")])

    def unit(self, nest: ReductionForm, piece: str) -> str:
        """Return statements for the location of a unit: ``piece`` elements of a row from ``begin``, ``a_run`` … in
        memory.
        """
        last = nest.reduced - 1
        step = "" if nest.adjacent_rows else f" * {{}}_r{last}"
        begin = "unit % pieces" if last else "unit"
        lines = [f"const INDEX begin = {begin} * {piece};"]
        lines += [f"INDEX {n}_run = {n}_row + begin{step.format(n)};" for n in self.names]
        return _joined([*lines, *offset_lines(self.names, last, "unit / pieces", "r", "_r", "_run")])

    def run(self, flat: str, rank: int, suffix: str = "_run") -> str:
        """Return statements for the offset ``a_run`` … of element ``flat`` of the reduced dims."""
        starts = [f"INDEX {n}{suffix} = {n}_row;" for n in self.names]
        return _joined([*starts, *offset_lines(self.names, rank, flat, "r", "_r", suffix)])

    # -- elements -----------------------------------------------------------------------------------------------------
    def declare_strip(self, name: str, size: int) -> str:
        """Return the declaration of the memory of a strip, if there is a producer."""
        return f"{self.element.memory} {name}[{size}];\n" if self.producer else ""

    def fill_strip(self, name: str, count: str, suffix: str, nest: ReductionForm, step: str) -> str:
        """Return statements that compute a strip, whose arrays begin at ``a`` + ``suffix``. ``step`` is the suffix of
        the strides along it.
        """
        if self.producer is None:
            return ""
        loop_nest = self.producer
        kinds = (1, *nest.inner)
        pointers = f"{self.element.memory}* p{loop_nest.written[0]} = {name};\n"
        for n, kind in zip(self.names, nest.inner, strict=True):
            pointers += loop_nest.pointer(n, f"{n} + {n}{suffix}", kind, f"{n}{step}")
        return f"{{\n{pointers}const u32 m = (u32)({count});\n{loop_nest.loop('m', kinds)}}}\n"

    def accumulate(self, lane: str, element: str) -> str:
        """Return statements that combine an element, an expression in memory, with a lane."""
        value = f"const {self.element.value} x = {self.element.load(element)};\n"
        return f"{{ {value}{lane} = {self.fold.combine(lane, f'({self.fold.each()})')};\n}}\n"

    def accumulate_at(self, lane: str, suffix: str, index: str = "", steps: str = "") -> str:
        """Return statements that combine the element ``index`` after the offset ``a`` + ``suffix`` with a lane;
        ``steps`` has ``{}`` for an array.
        """
        at = {n: f"{n}[{n}{suffix}{f' + {index}{steps.format(n)}' if index else ''}]" for n in self.names}
        if self.producer is None:
            return self.accumulate(lane, at["a"])
        computed = self.producer.inlined(at, "x")
        return f"{{ {computed}{lane} = {self.fold.combine(lane, f'({self.fold.each()})')};\n}}\n"

    def accumulate_vector(self, lanes: str, address: str, private: bool = False) -> str:
        """Return statements that combine eight elements from an address on with a vector of lanes."""
        loaded = f"{'PRIVATE' if private else 'LOAD'}_X8({self.element.memory}, {address})"
        if self.element.converts:
            loaded = f"load_{self.element.converts}_x8({loaded})"
        each = f"({self.fold.each('vector')})"
        return f"{{ const {self.element.value}x8 x = {loaded};\n{lanes} = {self.fold.combine(lanes, each)};\n}}\n"

    # -- totals -------------------------------------------------------------------------------------------------------
    def store_total(self, offset: str, total: str) -> str:
        """Return the statement that stores a total, or its result."""
        if self.store is None:
            return f"result[{offset}] = {total};\n"
        return f"result[{offset}] = {self.store.store('(' + self.fold.finished(total) + ')')};\n"

    def add_to_total(self, total: str, lane: str) -> str:
        """Return the statement that combines a lane with a total."""
        fold = self.fold
        return f"{total} = {fold.combine(total, lane if fold.lane == fold.total else f'({fold.total}){lane}')};\n"

    def source(
        self, mark: str, nest: ReductionForm, own: tuple[str, ...], body: str, wide: bool, group: int | None
    ) -> Source:
        """Return the kernel of a form."""
        starts = [f"{n}_at" for n in self.names]
        head = [number(n) for n in (*starts, "outputs", "count", "units", "parts", "per_part", "pieces", *own)]
        producer = self.producer
        numbers = () if producer is None else [number(f"s{i}", type) for i, type in enumerate(producer.numbers)]
        parameters = (*self.buffers, *head, *dim_parameters(self.names, nest), *numbers)
        contract = producer is not None and producer.contract
        return Source(f"{self.name}_{mark}", parameters, body, wide=wide, group=group, contract=contract)


def dim_parameters(names: Sequence[str], nest: ReductionForm) -> list[KernelParameter]:
    """Return the parameters with the sizes of the kept and of the reduced dims, each followed by the strides."""
    found = []
    for prefix, rank in (("k", nest.kept), ("r", nest.reduced)):
        found += [f"{prefix}{d}" for d in range(rank)]
        found += [f"{n}_{prefix}{d}" for n in names for d in range(rank)]
    return [number(each) for each in found]


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
