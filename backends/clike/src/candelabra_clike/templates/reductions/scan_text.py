"""The C of scans: what an element becomes, how two stretches are joined, and the loops of every form.

A scan keeps a *state* of one or more variables. That of a stretch of elements is what joining those of its elements in
order gives: joining is associative but need not commute.
"""

from __future__ import annotations

from dataclasses import dataclass

from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.templates.walks import dims_of
from candelabra_clike.types import CType

BLOCK = 128
"""Columns of a work-item that is a loop, at most."""
GROUP = 256
"""Work-items of a group."""
EACH = 8
"""Elements side by side that a lane of a group takes at once."""


@dataclass(frozen=True)
class Scan:
    """What a scan does: expressions and statements of C.

    ``states`` are the types of the variables and what they begin with; ``each`` makes them of a value ``{x}`` and its
    place ``{i}``. ``join`` are statements that put a later state ``{b0}``, ``{b1}`` into ``{a0}``, ``{a1}``;
    ``results`` are the outputs of a state ``{a0}``, ``{a1}``. The states that a scan begins with are only joined from
    the left. ``quick``: joining is worth doing twice where it shortens the chain of what waits for one another.
    """

    states: tuple[tuple[str, str], ...]
    each: tuple[str, ...]
    join: str
    results: tuple[str, ...] = ("{a0}",)
    quick: bool = True
    contract: bool = False


class ScanText:
    """The sources of one scan, over ``element`` with outputs of some types in memory.

    ``kept`` is the number of the dims that are not scanned, the innermost of them last.
    """

    def __init__(self, name: str, scan: Scan, element: CType, outputs: tuple[CType, ...], kept: int) -> None:
        self.name = name
        self.scan = scan
        self.element = element
        self.outputs = outputs
        self.kept = kept

    # -- pieces -------------------------------------------------------------------------------------------------------
    def state(self, name: str) -> str:
        """Declare a state, as what a scan begins with."""
        return "".join(f"{type} {name}{k} = {first};\n" for k, (type, first) in enumerate(self.scan.states))

    def element_state(self, name: str, place: str, i: str) -> str:
        """Declare the state of the element at a place, of number ``i``."""
        value = f"const {self.element.value} x_{name} = {self.element.load(f'a[{place}]')};\n"
        return value + self.state_of(name, f"x_{name}", i)

    def state_of(self, name: str, value: str, i: str) -> str:
        """Declare the state of a value."""
        parts = zip(self.scan.states, self.scan.each, strict=True)
        return "".join(f"{t} {name}{k} = {each.format(x=value, i=i)};\n" for k, ((t, _), each) in enumerate(parts))

    def copied(self, name: str, source: str) -> str:
        """Declare a state that is another's."""
        return "".join(f"{type} {name}{k} = {source}{k};\n" for k, (type, _) in enumerate(self.scan.states))

    def joined(self, a: str, b: str, at: str = "", of: str = "") -> str:
        """Statements that put the later state ``b`` into ``a``; ``at`` and ``of`` follow the names of variables."""
        parts = {f"a{k}": f"{a}{k}{at}" for k in range(len(self.scan.states))}
        parts |= {f"b{k}": f"{b}{k}{of}" for k in range(len(self.scan.states))}
        return self.scan.join.format(**parts) + "\n"

    def results(self, a: str, place: str, at: str = "", to: str = "out") -> str:
        """Write the outputs of a state."""
        parts = {f"a{k}": f"{a}{k}{at}" for k in range(len(self.scan.states))}
        stores = zip(self.outputs, self.scan.results, strict=True)
        return "".join(
            f"{to}{k}[{place}] = {o.store('(' + r.format(**parts) + ')')};\n" for k, (o, r) in enumerate(stores)
        )

    def totals(self, name: str, place: str, written: bool) -> str:
        """Write a state to the totals, or declare one that is read from there."""
        if written:
            return "".join(f"total{k}[{place}] = {name}{k};\n" for k in range(len(self.scan.states)))
        return "".join(f"{t} {name}{k} = total{k}[{place}];\n" for k, (t, _) in enumerate(self.scan.states))

    def row(self, flat: str, dims: int) -> str:
        """Where the row number ``flat`` of the first ``dims`` kept dims begins: ``out_row`` and ``a_row``."""
        text = "INDEX out_row = 0, a_row = a_at;\n"
        if not dims:
            return text
        lines = [f"INDEX left = {flat};"]
        for d in reversed(range(dims)):
            lines.append(f"{{ const INDEX p = {f'left % k{d}' if d else 'left'};")
            lines.append(f"out_row += p * out_k{d}; a_row += p * k_s{d}; }}" + (f" left /= k{d};" if d else ""))
        return text + "{ " + "\n".join(lines) + " }\n"

    def source(self, form: str, own: tuple[str, ...], body: str, wide: bool, group: int | None, parts: str) -> Source:
        """The kernel of a form. ``parts``: ``"totals"`` are all it writes, ``"rest"`` reads them, ``""`` has none."""
        outs: list[Parameter] = []
        if parts != "totals":
            outs = [writes(f"out{k}", o.memory) for k, o in enumerate(self.outputs)]
        if parts:
            buffer = writes if parts == "totals" else reads
            outs += [buffer(f"total{k}", type) for k, (type, _) in enumerate(self.scan.states)]
        numbers = [number(n) for n in ("a_at", "rows", "n", "out_step", "a_step", *own)]
        kept = [*dims_of("k", self.kept), *[number(f"out_k{d}") for d in range(self.kept)]]
        name = f"{self.name}_{form}{parts}_{self.kept}"
        parameters = (*outs, reads("a", self.element.memory), *numbers, *kept)
        return Source(name, parameters, body, group, wide, self.scan.contract)

    # -- a row after another ------------------------------------------------------------------------------------------
    def rows(self, wide: bool, group: int | None) -> Source:
        """A work-item has ``per_item`` rows, or lane ``o`` has row ``o``."""
        body = (
            "const INDEX first = GLOBAL_ID * per_item, end = rows - first < per_item ? rows : first + per_item;\n"
            f"for (INDEX o = first; o < end; ++o) {{\n{self.row('o', self.kept)}const INDEX begin = 0, stop = n;\n"
            f"{self.state('t')}{self._stretch()}}}"
        )
        return self.source("rows", ("per_item",), body, wide, group, "")

    def pieces(self, wide: bool, parts: str) -> Source:
        """Work-item ``g`` has part ``g % parts`` of row ``g / parts``: it finds the total, or it writes the outputs."""
        before = (
            "for (INDEX q = 0; q < part; ++q) {\n"
            f"{self.totals('b', 'o * parts + q', False)}{self.joined('t', 'b')}}}\n"
        )
        body = (
            "const INDEX o = GLOBAL_ID / parts, part = GLOBAL_ID % parts, begin = part * size;\n"
            f"const INDEX stop = n - begin < size ? n : begin + size;\n{self.row('o', self.kept)}{self.state('t')}"
        )
        if parts == "totals":
            body += f"{self._stretch(False)}{self.totals('t', 'o * parts + part', True)}"
        else:
            body += before + self._stretch()
        return self.source("pieces", ("parts", "size"), body, wide, 1, parts)

    def _stretch(self, written: bool = True) -> str:
        """Go on with state ``t`` from ``begin`` to ``stop``. Four at once wait for what was before them only once."""

        def at(i: str) -> str:
            return f"a_row + ({i}) * a_step"

        def out(name: str, i: str) -> str:
            return self.results(name, f"out_row + ({i}) * out_step") if written else ""

        four = ""
        if self.scan.quick:
            four = "for (; stop - i >= 4u; i += 4u) {\n"
            four += "".join(self.element_state(f"e{j}_", at(f"i + {j}u"), f"(i + {j}u)") for j in range(4))
            four += self.copied("p0_", "e0_")
            four += "".join(self.copied(f"p{j}_", f"p{j - 1}_") + self.joined(f"p{j}_", f"e{j}_") for j in range(1, 4))
            if written:
                four += "".join(
                    self.copied(f"u{j}_", "t") + self.joined(f"u{j}_", f"p{j}_") + out(f"u{j}_", f"i + {j}u")
                    for j in range(3)
                )
            four += f"{self.joined('t', 'p3_')}{out('t', 'i + 3u')}}}\n"
        one = f"{self.element_state('e', at('i'), 'i')}{self.joined('t', 'e')}{out('t', 'i')}"
        return f"INDEX i = begin;\n{four}for (; i < stop; ++i) {{\n{one}}}\n"

    # -- columns ------------------------------------------------------------------------------------------------------
    def columns(self, wide: bool, adjacent: bool) -> Source:
        """A work-item has a block of columns, side by side in the output, and in the input if ``adjacent``."""
        last = self.kept - 1
        place = "c" if adjacent else f"c * k_s{last}"
        arrays = "".join(f"{type} t{k}[{BLOCK}];\n" for k, (type, _) in enumerate(self.scan.states))
        begins = "".join(f"t{k}[c] = {first}; " for k, (_, first) in enumerate(self.scan.states))
        pointers = "".join(
            f"GLOBAL {o.memory}* to{k} = out{k} + (out_row + i * out_step);\n" for k, o in enumerate(self.outputs)
        )
        value = f"const {self.element.value} x = {self.element.load(f'from[{place}]')};\n"
        body = (
            "const INDEX begin = GLOBAL_ID % blocks * size, o = GLOBAL_ID / blocks;\n"
            f"const u32 width = (u32)(k{last} - begin < size ? k{last} - begin : size);\n"
            f"{self.row('o', last)}out_row += begin; a_row += begin * k_s{last};\n"
            f"{arrays}for (u32 c = 0; c < width; ++c) {{ {begins}}}\n"
            "for (INDEX i = 0; i < n; ++i) {\n"
            f"{pointers}GLOBAL const {self.element.memory}* from = a + (a_row + i * a_step);\n"
            f"INDEPENDENT\nfor (u32 c = 0; c < width; ++c) {{\n{value}{self.state_of('e', 'x', 'i')}"
            f"{self.joined('t', 'e', '[c]')}{self.results('t', 'c', '[c]', 'to')}}}\n}}"
        )
        return self.source("columns", ("blocks", "size"), body, wide, 1, "")

    # -- groups -------------------------------------------------------------------------------------------------------
    def groups(self, wide: bool, group: int, parts: str) -> Source:
        """Group ``g`` has part ``g % parts`` of row ``g / parts``, of ``size`` elements: whole tiles of a group."""
        shared = "".join(f"LOCAL {type} shared{k}[{group}];\n" for k, (type, _) in enumerate(self.scan.states))
        known = ""
        if parts == "rest":
            known = (
                f"{{\n{self.state('l')}if (LOCAL_ID < part) {{\n{self.totals('q', 'o * parts + LOCAL_ID', False)}"
                f"{self.joined('l', 'q')}}}\n{self._tree(group)}"
                f"if (part) {{\n{self.joined('t', 'shared', of='[part - 1u]')}}}\nBARRIER;\n}}\n"
            )
        begin = self.element_state("e", "a_row + (from + j) * a_step", "(from + j)")
        end = ""
        if parts != "totals":
            write = self.results("e", "out_row + (from + j) * out_step")
            end = (
                f"{self.copied('e', 't')}if (LOCAL_ID) {{\n{self.joined('e', 'shared', of='[LOCAL_ID - 1u]')}}}\n"
                f"for (u32 j = 0; j < many; ++j) {{\n{begin.replace(' e', ' f').replace('x_e', 'x_f')}"
                f"{self.joined('e', 'f')}{write}}}\n"
            )
        body = (
            f"{shared}const INDEX o = GROUP_ID / parts, part = GROUP_ID % parts, begin = part * size;\n"
            f"const INDEX stop = n - begin < size ? n : begin + size;\n"
            f"{self.row('o', self.kept)}{self.state('t')}{known}"
            f"for (INDEX tile = begin; tile < stop; tile += {group * EACH}u) {{\n"
            f"const INDEX from = tile + LOCAL_ID * {EACH}u;\n"
            f"const u32 many = from >= stop ? 0 : stop - from < {EACH}u ? (u32)(stop - from) : {EACH}u;\n"
            f"{self.state('l')}for (u32 j = 0; j < many; ++j) {{\n{begin}{self.joined('l', 'e')}}}\n"
            f"{self._tree(group)}{end}{self.joined('t', 'shared', of=f'[{group - 1}]')}BARRIER;\n}}\n"
        )
        if parts == "totals":
            body += f"if (LOCAL_ID == 0) {{\n{self.totals('t', 'o * parts + part', True)}}}"
        return self.source("groups", ("parts", "size"), body, wide, group, parts)

    def _tree(self, group: int) -> str:
        """Each lane's state ``l`` joined to those of all lanes before it, in ``shared`` (Hillis and Steele, 1986)."""
        many = range(len(self.scan.states))
        put = " ".join(f"shared{k}[LOCAL_ID] = l{k};" for k in many)
        get = " ".join(f"v{k} = shared{k}[LOCAL_ID - h];" for k in many)
        back = " ".join(f"l{k} = v{k};" for k in many)
        return (
            f"{put}\nBARRIER;\nfor (u32 h = 1; h < {group}u; h *= 2u) {{\n{self.state('v')}"
            f"if (LOCAL_ID >= h) {{ {get} }}\nBARRIER;\n"
            f"if (LOCAL_ID >= h) {{\n{self.joined('v', 'l')}{back}\n{put}\n}}\nBARRIER;\n}}\n"
        )
