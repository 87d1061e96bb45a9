"""The sources of scans.

A scan keeps a *state* of one or more variables. The state of a sequence of elements is the combination of the states of
its elements in order. Combining is associative, but need not be commutative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from candelabra_clike.language import Value, Variable, all_declared, assignments, constant, text
from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.index_walker import row_offsets, size_parameters, stride_parameters
from candelabra_clike.types import CType

BLOCK = 128
"""The maximum number of columns of a work-item on serial devices."""
GROUP = 256
"""The work-group size."""
VALUES: Final = "xy"
"""The names of the values of the inputs in expressions."""
INPUTS: Final = "ab"
"""The names of the inputs."""
EACH = 8
"""Adjacent elements that a lane of a group processes at a time."""
VECTOR: Final = 4
"""Elements of a vector load or store of a lane."""


@dataclass(frozen=True, eq=False)
class ScanOp:
    """The operation of a scan, as functions that return expressions; they ask for what they need by name.

    ``states`` are the types and initial values of the variables. ``each`` maps the values ``x``, ``y`` … of one element
    of each input, of types ``elements``, and their index ``i`` to them. ``operation`` combines a state ``a0``, ``a1`` …
    with a later one ``b0``, ``b1`` … into one. ``results`` maps a state ``a0``, ``a1`` … to the outputs, of the types
    ``outputs``. The initial state is only used as the left operand. With ``unrolls``, combining is cheap enough to be
    done twice to shorten the chain of dependent operations. With ``blocks``, a work-item combines elements of a block
    first, since combining rounds: the error of a sum of n terms, one after the other, grows with n, and with blocks of
    sqrt(n) terms with sqrt(n).

    Raises ``ExpressionError`` for a wrong expression.
    """

    name: str
    elements: tuple[str, ...]
    index: str
    states: tuple[tuple[str, float], ...]
    outputs: tuple[str, ...]
    each: Callable[..., Any]
    operation: Callable[..., Any]
    results: Callable[..., Any] = lambda a0: a0
    unrolls: bool = True
    contract: bool = False
    blocks: bool = False

    def __post_init__(self) -> None:
        names = [f"s{k}" for k in range(len(self.states))]
        for k in range(len(self.states)):
            self.first(k)
        self.state_of(VALUES[: len(self.elements)], "i")
        self.combined(names, names)
        self.result_of(names)

    def state_of(self, values: Sequence[str], index: str) -> list[Value]:
        """Return the state of a value of each input, the names of variables."""
        known = {n: Variable(type, value) for n, type, value in zip(VALUES, self.elements, values, strict=False)}
        known["i"] = Variable(self.index, index)
        return all_declared(repr(self.name), self.each, known, [(type,) for type, _ in self.states])

    def combined(self, a: Sequence[str], b: Sequence[str]) -> list[Value]:
        """Return the combination of two states, the names of variables."""
        known = {**self._named("a", a), **self._named("b", b)}
        return all_declared(repr(self.name), self.operation, known, [(type,) for type, _ in self.states])

    def result_of(self, a: Sequence[str]) -> list[Value]:
        """Return the outputs of a state."""
        known = self._named("a", a)
        return all_declared(repr(self.name), self.results, known, [(type,) for type in self.outputs])

    def _named(self, letter: str, names: Sequence[str]) -> dict[str, Value]:
        return {f"{letter}{k}": Variable(type, names[k]) for k, (type, _) in enumerate(self.states)}

    def first(self, k: int) -> str:
        """Return the text of an initial value."""
        return text(constant(*self.states[k]))


class ScanSourceBuilder:
    """The sources of a scan over ``elements``, those of the inputs, with outputs of these types in memory.

    ``kept`` is the number of dims that are not scanned; the last one is innermost.
    """

    def __init__(
        self, name: str, scan: ScanOp, elements: tuple[CType, ...], outputs: tuple[CType, ...], kept: int
    ) -> None:
        self.name = name
        self.scan = scan
        self.elements = elements
        self.inputs = tuple(INPUTS[: len(elements)])
        self.outputs = outputs
        self.kept = kept

    # -- statements ---------------------------------------------------------------------------------------------------
    def state(self, name: str) -> str:
        """Declare a state with its initial value."""
        firsts = [self.scan.first(k) for k in range(len(self.scan.states))]
        return "".join(f"{type} {name}{k} = {firsts[k]};\n" for k, (type, _) in enumerate(self.scan.states))

    def element_state(self, name: str, offset: str, i: str) -> str:
        """Declare the state of the element at an offset, in which ``{}`` stands for an input, with index ``i``."""
        return self.loaded_state(name, [f"{n}[{offset.format(n)}]" for n in self.inputs], f"_{name}", i)

    def loaded_state(self, name: str, offsets: Sequence[str], suffix: str, i: str) -> str:
        """Declare the state of elements in memory, whose values get the names ``x`` + ``suffix`` …"""
        values = [f"{letter}{suffix}" for letter in VALUES[: len(offsets)]]
        loads = [
            f"const {e.value} {v} = {e.load(at)};\n" for e, v, at in zip(self.elements, values, offsets, strict=True)
        ]
        return "".join(loads) + self.state_of(name, values, i)

    def state_of(self, name: str, values: Sequence[str], i: str) -> str:
        """Declare the state of a value of each input."""
        states = zip(self.scan.states, self.scan.state_of(values, i), strict=True)
        return "".join(f"{type} {name}{k} = {text(each)};\n" for k, ((type, _), each) in enumerate(states))

    def copy_state(self, name: str, source: str) -> str:
        """Declare a state as a copy of another one."""
        return "".join(f"{type} {name}{k} = {source}{k};\n" for k, (type, _) in enumerate(self.scan.states))

    def combine(self, a: str, b: str, at: str = "", of: str = "") -> str:
        """Return statements that combine the later state ``b`` into ``a``; ``at`` and ``of`` are suffixes of the
        variables.
        """
        many = range(len(self.scan.states))
        targets = [f"{a}{k}{at}" for k in many]
        return assignments(targets, self.scan.combined(targets, [f"{b}{k}{of}" for k in many]))

    def results(self, a: str, index: str, at: str = "", to: str = "out") -> str:
        """Return statements that store the outputs of a state."""
        values = self.scan.result_of([f"{a}{k}{at}" for k in range(len(self.scan.states))])
        stores = zip(self.outputs, values, strict=True)
        return "".join(f"{to}{k}[{index}] = {o.store('(' + text(r) + ')')};\n" for k, (o, r) in enumerate(stores))

    def totals(self, name: str, index: str, written: bool) -> str:
        """Return statements that store a state in the totals, or that declare a state with values from there."""
        if written:
            return "".join(f"total{k}[{index}] = {name}{k};\n" for k in range(len(self.scan.states)))
        return "".join(f"{t} {name}{k} = total{k}[{index}];\n" for k, (t, _) in enumerate(self.scan.states))

    def row(self, flat: str, dims: int) -> str:
        """Return statements for the offsets ``out_row``, ``a_row`` … of a row, along the first ``dims`` kept dims."""
        return "const INDEX out_at = 0;\n" + row_offsets(("out", *self.inputs), dims, flat, "k", "_k")

    def source(self, form: str, own: tuple[str, ...], body: str, wide: bool, group: int | None, phase: str) -> Source:
        """Return the kernel of a form. ``phase``: ``"totals"`` stores only totals, ``"rest"`` reads them, ``""`` has
        none.
        """
        outs: list[KernelParameter] = []
        if phase != "totals":
            outs = [writes(f"out{k}", o.memory) for k, o in enumerate(self.outputs)]
        if phase:
            buffer = writes if phase == "totals" else reads
            outs += [buffer(f"total{k}", type) for k, (type, _) in enumerate(self.scan.states)]
        steps = [f"{n}_step" for n in ("out", *self.inputs)]
        numbers = [number(n) for n in (*[f"{n}_at" for n in self.inputs], "rows", "n", *steps, *own)]
        kept = [*size_parameters(self.kept, "k"), *stride_parameters((*self.inputs, "out"), self.kept, "_k")]
        name = f"{self.name}_{form}{phase}_{self.kept}"
        arrays = [reads(n, e.memory) for n, e in zip(self.inputs, self.elements, strict=True)]
        parameters = (*outs, *arrays, *numbers, *kept)
        return Source(name, parameters, body, group, wide, self.scan.contract)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def rows(self, wide: bool, group: int | None) -> Source:
        """Return the kernel in which a work-item scans ``per_item`` rows, or lane ``o`` scans row ``o``."""
        body = (
            "const INDEX first = GLOBAL_ID * per_item, end = rows - first < per_item ? rows : first + per_item;\n"
            f"for (INDEX o = first; o < end; ++o) {{\n{self.row('o', self.kept)}const INDEX begin = 0, stop = n;\n"
            f"{self.state('t')}{self._scan_range()}}}"
        )
        return self.source("rows", ("per_item",), body, wide, group, "")

    def pieces(self, wide: bool, phase: str) -> Source:
        """Return the kernel in which work-item ``g`` processes part ``g % parts`` of row ``g / parts``: its total or
        its outputs.
        """
        before = (
            "for (INDEX q = 0; q < part; ++q) {\n"
            f"{self.totals('b', 'o * parts + q', False)}{self.combine('t', 'b')}}}\n"
        )
        body = (
            "const INDEX o = GLOBAL_ID / parts, part = GLOBAL_ID % parts, begin = part * size;\n"
            f"const INDEX stop = n - begin < size ? n : begin + size;\n{self.row('o', self.kept)}{self.state('t')}"
        )
        if phase == "totals":
            body += f"{self._scan_range(False)}{self.totals('t', 'o * parts + part', True)}"
        else:
            body += before + self._scan_range()
        return self.source("pieces", ("parts", "size"), body, wide, 1, phase)

    def _scan_range(self, written: bool = True) -> str:
        """Return statements that continue with state ``t`` from ``begin`` to ``stop``."""
        if not self.scan.blocks:
            return f"INDEX i = begin;\n{self._scan_until('t', 'stop', written)}"
        return (
            f"{self._block('stop - begin')}for (INDEX i = begin; i < stop;) {{\n{self.state('l')}"
            "const INDEX until = stop - i < block ? stop : i + block;\n"
            f"{self._scan_until('l', 'until', written)}{self.combine('t', 'l')}}}\n"
        )

    def _scan_until(self, t: str, stop: str, written: bool) -> str:
        """Return statements that continue with a state from ``i`` to ``stop``. Four elements at a time depend on it
        once.
        """

        def at(i: str) -> str:
            return f"{{0}}_row + ({i}) * {{0}}_step"

        def out(name: str, i: str) -> str:
            if not written:
                return ""
            before = ""
            if self.scan.blocks:
                before, name = self.copy_state(f"{name}_r", "t") + self.combine(f"{name}_r", name), f"{name}_r"
            return before + self.results(name, f"out_row + ({i}) * out_step")

        four = ""
        if self.scan.unrolls:
            four = f"for (; {stop} - i >= 4u; i += 4u) {{\n"
            four += "".join(self.element_state(f"e{j}_", at(f"i + {j}u"), f"(i + {j}u)") for j in range(4))
            four += self.copy_state("p0_", "e0_")
            four += "".join(
                self.copy_state(f"p{j}_", f"p{j - 1}_") + self.combine(f"p{j}_", f"e{j}_") for j in range(1, 4)
            )
            if written:
                four += "".join(
                    self.copy_state(f"u{j}_", t) + self.combine(f"u{j}_", f"p{j}_") + out(f"u{j}_", f"i + {j}u")
                    for j in range(3)
                )
            four += f"{self.combine(t, 'p3_')}{out(t, 'i + 3u')}}}\n"
        one = f"{self.element_state('e', at('i'), 'i')}{self.combine(t, 'e')}{out(t, 'i')}"
        return f"{four}for (; i < {stop}; ++i) {{\n{one}}}\n"

    def _block(self, count: str) -> str:
        """Return statements that define the size of a block: a power of two, from the root of ``count`` on."""
        return f"INDEX block = 32;\nwhile (block * block < {count}) block *= 2;\n"

    # -- columns ------------------------------------------------------------------------------------------------------
    def columns(self, wide: bool, adjacent: bool) -> Source:
        """Return the kernel in which a work-item scans a block of columns, adjacent in the output, and in the input if
        ``adjacent``.
        """
        last = self.kept - 1
        offset = "c" if adjacent else f"c * {{}}_k{last}"
        arrays = "".join(f"{type} t{k}[{BLOCK}];\n" for k, (type, _) in enumerate(self.scan.states))
        begins = "".join(f"t{k}[c] = {self.scan.first(k)}; " for k in range(len(self.scan.states)))
        pointers = "".join(
            f"GLOBAL {o.memory}* to{k} = out{k} + (out_row + i * out_step);\n" for k, o in enumerate(self.outputs)
        )
        starts = zip(self.inputs, self.elements, strict=True)
        pointers += "".join(f"GLOBAL const {e.memory}* from_{n} = {n} + ({n}_row + i * {n}_step);\n" for n, e in starts)
        each = self.loaded_state("e", [f"from_{n}[{offset.format(n)}]" for n in self.inputs], "", "i")
        begin = "".join(f" {n}_row += begin * {n}_k{last};" for n in self.inputs)
        t, block, update, result = "t", "", "", self.results("t", "c", "[c]", "to")
        if self.scan.blocks:
            t, block = "l", self._block("n")
            arrays += arrays.replace(" t", " l")
            firsts = begins.replace("t", "l")
            begins += firsts
            fold = f"for (u32 c = 0; c < width; ++c) {{ {self.combine('t', 'l', '[c]', '[c]')}{firsts}}}\n"
            update = f"if (i && i % block == 0) {{\nINDEPENDENT\n{fold}}}\n"
            copies = "".join(f"{type} r{k} = t{k}[c];\n" for k, (type, _) in enumerate(self.scan.states))
            result = copies + self.combine("r", "l", of="[c]") + self.results("r", "c", to="to")
        body = (
            "const INDEX begin = GLOBAL_ID % blocks * size, o = GLOBAL_ID / blocks;\n"
            f"const u32 width = (u32)(k{last} - begin < size ? k{last} - begin : size);\n"
            f"{self.row('o', last)}out_row += begin;{begin}\n"
            f"{arrays}for (u32 c = 0; c < width; ++c) {{ {begins}}}\n"
            f"{block}for (INDEX i = 0; i < n; ++i) {{\n{update}"
            f"{pointers}INDEPENDENT\nfor (u32 c = 0; c < width; ++c) {{\n{each}"
            f"{self.combine(t, 'e', '[c]')}{result}}}\n}}"
        )
        return self.source("columns", ("blocks", "size"), body, wide, 1, "")

    # -- groups -------------------------------------------------------------------------------------------------------
    def groups(self, wide: bool, group: int, lanes: int, warp: int, phase: str) -> Source:
        """Return the kernel in which group ``g`` scans part ``g % parts`` of row ``g / parts``, in whole tiles of
        ``size`` elements. With fewer ``lanes`` than ``group``, a group scans several rows, each in one part.

        A lane has :data:`EACH` adjacent elements of a tile in registers. ``warp`` lanes exchange states directly.
        """
        shared = known = ""
        if lanes > warp:
            size = group // warp
            shared = "".join(f"LOCAL {type} shared{k}[{size}];\n" for k, (type, _) in enumerate(self.scan.states))
        if phase == "rest":
            many = range(len(self.scan.states))
            put = " ".join(f"shared{k}[0] = e{k};" for k in many)
            get = " ".join(f"t{k} = shared{k}[0];" for k in many)
            known = (
                f"{{\n{self.state('l')}if (LOCAL_ID < part) {{\n{self.totals('q', 'o * parts + LOCAL_ID', False)}"
                f"{self.combine('l', 'q')}}}\n{self._scan_lanes(lanes, warp)}"
                f"if (LOCAL_ID == part) {{ {put} }}\nBARRIER;\n{get}\nBARRIER;\n}}\n"
            )
        start = (
            "const u32 lane = LOCAL_ID;\n"
            "const INDEX o = GROUP_ID / parts, part = GROUP_ID % parts, begin = part * size;\n"
            "const INDEX stop = n - begin < size ? n : begin + size;\n"
        )
        if lanes < group:
            start = (
                f"const u32 lane = LOCAL_ID % {lanes}u;\n"
                f"const INDEX row = GROUP_ID * {group // lanes}u + LOCAL_ID / {lanes}u;\n"
                "const INDEX o = row < rows ? row : rows - 1, begin = 0, stop = row < rows ? n : 0;\n"
            )
        values = [f"v{n}" for n in self.inputs]
        each = self.state_of("f", [f"{v}[j]" for v in values], "(from + j)")
        end = "" if phase == "totals" else self._store_lane(each)
        body = (
            f"{shared}{start}{self.row('o', self.kept)}{self._adjacent(phase)}{self.state('t')}{known}"
            f"for (INDEX tile = begin; tile < stop; tile += {lanes * EACH}u) {{\n"
            f"const INDEX from = tile + lane * {EACH}u;\n"
            f"const u32 many = from >= stop ? 0 : stop - from < {EACH}u ? (u32)(stop - from) : {EACH}u;\n"
            f"{self._load_lane()}{self.state('l')}UNROLL for (u32 j = 0; j < {EACH}u; ++j) if (j < many) {{\n"
            f"{each}{self.combine('l', 'f')}}}\n{self._scan_lanes(lanes, warp)}{end}}}\n"
        )
        if phase == "totals":
            body += f"if (LOCAL_ID == 0) {{\n{self.totals('t', 'o * parts + part', True)}}}"
        return self.source(f"groups{lanes}_", ("parts", "size"), body, wide, group, phase)

    def _adjacent(self, phase: str) -> str:
        """Return statements that find out whether whole vectors of each array are aligned, in row ``o``."""
        outs = [] if phase == "totals" else [(f"out{k}", "out", e) for k, e in enumerate(self.outputs)]
        arrays = [*[(n, n, e) for n, e in zip(self.inputs, self.elements, strict=True)], *outs]
        if any(e.memory[0] == "c" for _, _, e in arrays):
            return "const u32 adjacent = 0;\n"
        tests = [
            f"{n}_step == 1 && {LaneVector(n, e.memory, VECTOR).is_aligned(f'{pointer} + {n}_row')}"
            for pointer, n, e in arrays
        ]
        return f"const u32 adjacent = {' && '.join(tests)};\n"

    def _load_lane(self) -> str:
        """Return statements that load the elements of a lane into the arrays ``va`` …"""
        declared = vectors = scalars = ""
        for n, e in zip(self.inputs, self.elements, strict=True):
            declared += f"{e.value} v{n}[{EACH}];\n"
            element = e.load(f"{n}[{n}_row + (from + j) * {n}_step]")
            scalars += f"if (j < many) v{n}[j] = {element};\n"
            if e.memory[0] == "c":
                continue
            for j in range(0, EACH, VECTOR):
                w = LaneVector("w", e.memory, VECTOR)
                parts = "".join(f"v{n}[{j + p}] = {e.load(w.element(p))};\n" for p in range(VECTOR))
                vectors += f"{{ {w.declaration()}{w.load(f'{n} + ({n}_row + from + {j}u)')}{parts}}}\n"
        scalars = f"UNROLL for (u32 j = 0; j < {EACH}u; ++j) {{\n{scalars}}}\n"
        if not vectors:
            return declared + scalars
        return f"{declared}if (adjacent && many == {EACH}u) {{\n{vectors}}} else {{\n{scalars}}}\n"

    def _store_lane(self, each: str) -> str:
        """Return statements that store the outputs of a lane, from state ``e`` before its first element."""
        values = self.scan.result_of([f"e{k}" for k in range(len(self.scan.states))])
        declared = vectors = scalars = results = ""
        for k, (o, value) in enumerate(zip(self.outputs, values, strict=True)):
            declared += f"{o.memory} r{k}[{EACH}];\n"
            results += f"r{k}[j] = {o.store('(' + text(value) + ')')};\n"
            scalars += f"if (j < many) out{k}[out_row + (from + j) * out_step] = r{k}[j];\n"
            if o.memory[0] == "c":
                continue
            for j in range(0, EACH, VECTOR):
                w = LaneVector("w", o.memory, VECTOR)
                parts = "".join(f"{w.element(p)} = r{k}[{j + p}];\n" for p in range(VECTOR))
                vectors += f"{{ {w.declaration()}{parts}{w.store(f'out{k} + (out_row + from + {j}u)')}}}\n"
        scan = f"UNROLL for (u32 j = 0; j < {EACH}u; ++j) if (j < many) {{\n{each}{self.combine('e', 'f')}{results}}}\n"
        scalars = f"UNROLL for (u32 j = 0; j < {EACH}u; ++j) {{\n{scalars}}}\n"
        if not vectors:
            return declared + scan + scalars
        return f"{declared}{scan}if (adjacent && many == {EACH}u) {{\n{vectors}}} else {{\n{scalars}}}\n"

    def _scan_lanes(self, lanes: int, warp: int) -> str:
        """Declare state ``e``, which is ``t`` combined with the states ``l`` of earlier lanes, and combine ``t`` with
        those of all lanes (Hillis and Steele, 1986).
        """
        many = range(len(self.scan.states))
        if warp == 1:
            return self._scan_group(lanes)
        scan, h = "", 1
        while h < warp:
            moved = "".join(
                f"{type} v{k} = SHUFFLE(l{k}, LOCAL_ID - {h}u);\n" for k, (type, _) in enumerate(self.scan.states)
            )
            kept = " ".join(f"l{k} = v{k};" for k in many)
            scan += f"{{\n{moved}if (LOCAL_ID % {warp}u >= {h}u) {{\n{self.combine('v', 'l')}{kept}\n}}\n}}\n"
            h *= 2
        states = list(enumerate(self.scan.states))
        scan += "".join(f"const {type} b{k} = SHUFFLE(l{k}, LOCAL_ID - 1u);\n" for k, (type, _) in states)
        if lanes == warp:
            totals = "".join(f"const {type} w{k} = SHUFFLE(l{k}, {warp - 1}u);\n" for k, (type, _) in states)
            scan += f"{totals}{self.copy_state('e', 't')}{self.combine('t', 'w')}"
        else:
            put = " ".join(f"shared{k}[LOCAL_ID / {warp}u] = l{k};" for k in many)
            before = " ".join(f"e{k} = t{k};" for k in many)
            scan += (
                f"if (LOCAL_ID % {warp}u == {warp - 1}u) {{ {put} }}\nBARRIER;\n{self.state('e')}"
                f"UNROLL for (u32 w = 0; w < {lanes // warp}u; ++w) {{\nif (w == LOCAL_ID / {warp}u) {{ {before} }}\n"
                f"{self.combine('t', 'shared', of='[w]')}}}\nBARRIER;\n"
            )
        return f"{scan}if (LOCAL_ID % {warp}u) {{\n{self.combine('e', 'b')}}}\n"

    def _scan_group(self, group: int) -> str:
        """Return :meth:`_scan_lanes` for dialects without SHUFFLE."""
        many = range(len(self.scan.states))
        put = " ".join(f"shared{k}[LOCAL_ID] = l{k};" for k in many)
        get = " ".join(f"v{k} = shared{k}[LOCAL_ID - h];" for k in many)
        back = " ".join(f"l{k} = v{k};" for k in many)
        return (
            f"{put}\nBARRIER;\nfor (u32 h = 1; h < {group}u; h *= 2u) {{\n{self.state('v')}"
            f"if (LOCAL_ID >= h) {{ {get} }}\nBARRIER;\n"
            f"if (LOCAL_ID >= h) {{\n{self.combine('v', 'l')}{back}\n{put}\n}}\nBARRIER;\n}}\n"
            f"{self.copy_state('e', 't')}if (LOCAL_ID) {{\n{self.combine('e', 'shared', of='[LOCAL_ID - 1u]')}}}\n"
            f"{self.combine('t', 'shared', of=f'[{group - 1}]')}BARRIER;\n"
        )
