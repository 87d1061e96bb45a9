"""A kernel before it is compiled: a name, parameters and a body in the words of :mod:`candelabra_clike.dialect`."""

from __future__ import annotations

from collections.abc import Sequence
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
        return self._text(self.parameters, self.body)

    def _text(self, parameters: Sequence[Parameter], body: str) -> str:
        declared = ", ".join(p.declaration() for p in parameters)
        group = f"REQUIRED_GROUP({self.group}) " if self.group else ""
        return f"{needed(body)}KERNEL {group}void {self.name}({declared}) {{\n{body}\n}}\n"

    def program(self, dialect: Dialect) -> str:
        """The whole program in one language."""
        if dialect.rounds_up and self.group is None:
            text = self._text((*self.parameters, COUNT), f"if (GLOBAL_ID >= {COUNT.name}) return;\n{self.body}")
        else:
            text = self.text
        parts = ["" if self.contract else dialect.exact, dialect.preamble, dialect.float64 if self.float64 else ""]
        # The index type is defined first of all: the preamble's ids are of that type.
        return f"{parts[0]}#define INDEX {self.index}\n{parts[1]}{parts[2]}{text}"

    def types(self) -> Sequence[str]:
        """The type of each number among the parameters, ``""`` for buffers."""
        return ["" if p.buffer else self.index if p.type == "INDEX" else p.type for p in self.parameters]
