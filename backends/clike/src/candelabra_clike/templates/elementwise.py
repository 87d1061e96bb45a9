"""One expression for every element, over arrays of any layout that broadcast together.

Three forms: all contiguous; a few dims with a stride per array (as few as there can be); and each of them for devices
whose work-items are loops (``serial``) or lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import aligned, broadcast, collapsed, is_wide, overlapping
from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.types import CTYPES

CHUNK = 4096
"""Elements of a work-item that is a loop."""
NAMES = "abcdefgh"
"""What an expression calls its operands, in order; its numbers are ``s0``, ``s1`` …"""


class Elementwise:
    """``out[i] = expression(a[i], b[i], …, s0, s1, …)``.

    ``inputs`` and ``output`` are the dtypes in memory, ``numbers`` the types of the scalars. The expression is of
    values (see :mod:`candelabra_clike.types`) and gives a value of the output.
    """

    def __init__(
        self,
        name: str,
        expression: str,
        inputs: Sequence[dtype],
        output: dtype,
        numbers: Sequence[str] = (),
        contract: bool = False,
    ) -> None:
        self.name = name
        self.expression = expression
        self.inputs = tuple(inputs)
        self.output = output
        self.numbers = tuple(numbers)
        self.contract = contract
        self._flat: dict[tuple[Engine, bool], Launch] = {}
        self._strided: dict[Any, Launch] = {}

    def __call__(self, *arrays: StridedArray, numbers: Sequence[Any] = (), out: StridedArray | None = None) -> Any:
        """A new array, or ``out`` with the result in it; ``out`` may be one of the arrays, or overlap them."""
        first = arrays[0]
        shape = first.shape
        flat = first.contiguous
        for array in arrays[1:]:
            if array.shape != shape or not array.contiguous:
                flat = False
        if not flat:
            shape = broadcast([array.shape for array in arrays])
        if out is None:
            result = first.engine.empty(shape, self.output)
        else:
            result = out
            if out.shape != shape:
                raise RuntimeError(f"{self.name}: a result of shape {shape} does not fit into {out.shape}")
            arrays = tuple(apart(array, out) for array in arrays)
            flat = flat and out.contiguous
        if flat:
            self.flat(result, arrays, numbers)
        elif result.size:
            self.strided(result, arrays, numbers)
        return result

    # -- contiguous ---------------------------------------------------------------------------------------------------
    def flat(self, out: StridedArray, arrays: Sequence[StridedArray], numbers: Sequence[Any]) -> None:
        """All contiguous, of one shape."""
        engine, size = out.engine, out.size
        wide = size >= 2**31 or any(array.offset >= 2**31 - size for array in (out, *arrays))
        launch = self._flat.get((engine, wide))
        if launch is None:
            launch = self._flat[engine, wide] = engine.compile(self.flat_source(engine.traits.serial, wide))
        count = -(-size // CHUNK) if engine.traits.serial else size
        launch(count, out.buffer, *[a.buffer for a in arrays], out.offset, *[a.offset for a in arrays], size, *numbers)

    def flat_source(self, serial: bool, wide: bool) -> Source:
        names = ("out", *NAMES[: len(self.inputs)])
        head = (*self._buffers(), *[number(f"{n}_at") for n in names], number("n"), *self._numbers())
        places = {n: f"{n}_at + i" for n in names}
        if serial:
            body = (
                f"const INDEX first = GLOBAL_ID * {CHUNK}u, rest = n - first;\n"
                f"const INDEX last = first + (rest < {CHUNK}u ? rest : {CHUNK}u);\n"
                f"for (INDEX i = first; i < last; ++i) {{\n{self._step(places)}}}"
            )
        else:
            body = f"const INDEX i = GLOBAL_ID;\nif (i < n) {{\n{self._step(places)}}}"
        return Source(self.name, head, body, wide=wide, contract=self.contract)

    # -- strided ------------------------------------------------------------------------------------------------------
    def strided(self, out: StridedArray, arrays: Sequence[StridedArray], numbers: Sequence[Any]) -> None:
        """Any layouts."""
        engine = out.engine
        sizes, rows = collapsed(out.shape, (out.strides, *[aligned(array, out.shape) for array in arrays]))
        wide = is_wide(out, *arrays)
        inner = tuple(min(row[-1], 2) for row in rows)
        key = (engine, len(sizes), inner, wide)
        launch = self._strided.get(key)
        if launch is None:
            launch = self._strided[key] = engine.compile(
                self.strided_source(engine.traits.serial, len(sizes), inner, wide)
            )
        rows_per_item = max(1, CHUNK // sizes[-1])
        total = out.size // sizes[-1]
        count = -(-total // rows_per_item) if engine.traits.serial else out.size
        launch(
            count, out.buffer, *[a.buffer for a in arrays], out.offset, *[a.offset for a in arrays], total,
            rows_per_item, *sizes, *[step for row in rows for step in row], *numbers,
        )  # fmt: skip

    def strided_source(self, serial: bool, rank: int, inner: Shape, wide: bool) -> Source:
        """``inner`` is the last stride of each array where that is 0 or 1, 2 for all others."""
        names = ("out", *NAMES[: len(self.inputs)])
        head = (
            *self._buffers(),
            *[number(f"{n}_at") for n in names],
            number("rows"),
            number("rows_per_item"),
            *[number(f"n{d}") for d in range(rank)],
            *[number(f"{n}_s{d}") for n in names for d in range(rank)],
            *self._numbers(),
        )
        last = rank - 1
        steps = {n: ("0", "i", f"i * {n}_s{last}")[kind] for n, kind in zip(names, inner, strict=True)}
        step = self._step({n: f"{n}_row + {steps[n]}" for n in names})
        if serial:
            loop = f"for (INDEX i = 0; i < n{last}; ++i) {{\n{step}}}\n"
            body = (
                "const INDEX first = GLOBAL_ID * rows_per_item, rest = rows - first;\n"
                "const INDEX end = first + (rest < rows_per_item ? rest : rows_per_item);\n"
                f"for (INDEX row = first; row < end; ++row) {{\n{self._row(names, rank)}{loop}}}"
            )
        else:
            body = (
                "const INDEX element = GLOBAL_ID;\n"
                f"if (element < rows * n{last}) {{\nconst INDEX row = element / n{last}, i = element % n{last};\n"
                f"{self._row(names, rank)}{step}}}"
            )
        return Source(f"{self.name}_{rank}d", head, body, wide=wide, contract=self.contract)

    @staticmethod
    def _row(names: Sequence[str], rank: int) -> str:
        """Where a row of each array begins, from its number."""
        lines = [f"INDEX {n}_row = {n}_at;" for n in names]
        if rank > 1:
            lines.append("INDEX left = row;")
        for d in range(rank - 2, -1, -1):
            place = "left" if d == 0 else f"left % n{d}"
            lines.append("{ const INDEX p = %s; %s }" % (place, " ".join(f"{n}_row += p * {n}_s{d};" for n in names)))
            if d:
                lines.append(f"left /= n{d};")
        return "\n".join(lines) + "\n"

    # -- both ---------------------------------------------------------------------------------------------------------
    def _buffers(self) -> list[Parameter]:
        ins = [reads(n, CTYPES[d].memory) for n, d in zip(NAMES, self.inputs)]
        return [writes("out", CTYPES[self.output].memory), *ins]

    def _numbers(self) -> list[Parameter]:
        return [number(f"s{i}", type) for i, type in enumerate(self.numbers)]

    def _step(self, places: dict[str, str]) -> str:
        """Load, compute, store one element. The operands are values of the same names within the braces."""
        loads = [
            f"const {CTYPES[d].value} v{n} = {CTYPES[d].load(f'{n}[{places[n]}]')};" for n, d in zip(NAMES, self.inputs)
        ]
        value = self.expression.format(**{n: f"v{n}" for n, _ in zip(NAMES, self.inputs)})
        return "\n".join([*loads, f"out[{places['out']}] = {CTYPES[self.output].store(value)};\n"])


def apart(array: StridedArray, out: StridedArray) -> StridedArray:
    """The array, or a copy of it where writing ``out`` element by element would change what is still to be read."""
    if array.buffer is not out.buffer or not overlapping(array, out):
        return array
    if array.shape == out.shape and array.strides == out.strides and array.offset == out.offset:
        return array
    copy: StridedArray = identity(array.dtype)(array)
    return copy


@lru_cache(64)
def identity(d: dtype) -> Elementwise:
    """The copy of elements of a dtype, as integers of its size: every bit arrives."""
    bits = {1: uint8, 2: uint16, 4: uint32, 8: uint64}.get(d.itemsize, d)
    return Elementwise(f"copy_{CTYPES[bits].memory}", "{a}", (bits,), bits)
