"""A kernel before it is compiled: a name, parameters and a body in the words of :mod:`candelabra_clike.dialect`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from candelabra_clike.dialect import Dialect
from candelabra_clike.library import needed


class Parameter(NamedTuple):
    """An argument of a kernel: a buffer of elements of a type, or a number of that type.

    Numbers are of the types ``i32 u32 i64 u64 f32 f64`` or ``INDEX``: no language lets others pass everywhere.
    """

    name: str
    type: str
    buffer: bool = False
    written: bool = False

    def declaration(self) -> str:
        if not self.buffer:
            return f"const {self.type} {self.name}"
        return f"GLOBAL {'' if self.written else 'const '}{self.type}* {self.name}"


def reads(name: str, type: str) -> Parameter:
    """A buffer that is only read. It may be the same as one that is written: there is no ``restrict``."""
    return Parameter(name, type, buffer=True)


def writes(name: str, type: str) -> Parameter:
    """A buffer that is written, and may be read."""
    return Parameter(name, type, buffer=True, written=True)


def number(name: str, type: str = "INDEX") -> Parameter:
    """A number; without a type an index: 32 bits where they are enough, 64 in the wide variant."""
    return Parameter(name, type)


COUNT = number("work_items")
"""The last argument of kernels in dialects that round the number of work-items up."""


@dataclass(frozen=True)
class Source:
    """A kernel. Equal sources are compiled once on each device.

    ``group`` is the size of its work-groups, if it depends on it; without one a launch names the number of work-items
    and the engine chooses. ``wide``: indices have 64 bits. ``contract``: ``a * b + c`` may be rounded once.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: str
    group: int | None = None
    wide: bool = False
    contract: bool = False
    float64: bool = False
    """Whether it takes a device with float64; found in the text where a type says so."""

    def __post_init__(self) -> None:
        if not self.float64:
            object.__setattr__(self, "float64", "f64" in self.text or "c128" in self.text)
        object.__setattr__(self, "_hash", hash((self.name, self.parameters, self.body, self.group, self.wide)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @property
    def index(self) -> str:
        """The type of its indices."""
        return "u64" if self.wide else "u32"

    @property
    def text(self) -> str:
        """The entry point with the functions that it needs, without the dialect's preamble."""
        return needed(self.body) + self.entry(None)

    def entry(self, dialect: Dialect | None, name: str = "") -> str:
        """The entry point alone; with a dialect, as that launches it, and under another name if one is given."""
        parameters, body = self.parameters, self.body
        if dialect is not None and dialect.rounds_up and self.group is None:
            parameters = (*parameters, COUNT)
            body = f"if (GLOBAL_ID >= {COUNT.name}) return;\n{body}"
        declared = ", ".join(p.declaration() for p in parameters)
        group = f"REQUIRED_GROUP({self.group}) " if self.group else ""
        return f"KERNEL {group}void {name or self.name}({declared}) {{\n{body}\n}}\n"

    def program(self, dialect: Dialect) -> str:
        """The whole program in one language."""
        return self.preamble(dialect) + needed(self.body) + self.entry(dialect)

    def preamble(self, dialect: Dialect) -> str:
        """What stands before functions and entry points. The index type comes first: the dialect's ids are of it."""
        exact = "" if self.contract else dialect.exact
        return f"{exact}#define INDEX {self.index}\n{dialect.preamble}{dialect.float64 if self.float64 else ''}"

    def types(self) -> Sequence[str]:
        """The type of each number among the parameters, ``""`` for buffers."""
        return ["" if p.buffer else self.index if p.type == "INDEX" else p.type for p in self.parameters]


def units(sources: Iterable[Source], dialect: Dialect, size: int = 60) -> Iterator[tuple[Source, str]]:
    """Many kernels in few programs, each with the first of its sources: what differs in preamble is kept apart.

    Entry points are numbered, since kernels of one name for different layouts meet in a program.
    """
    groups: dict[tuple[str, bool], list[Source]] = {}
    for source in sources:
        groups.setdefault((source.preamble(dialect), source.contract), []).append(source)
    for group in groups.values():
        for start in range(0, len(group), size):
            part = group[start : start + size]
            functions = needed("\n".join(source.body for source in part))
            entries = [source.entry(dialect, f"{source.name}_{i}") for i, source in enumerate(part)]
            yield part[0], part[0].preamble(dialect) + functions + "".join(entries)
