"""The source of a kernel: a name, parameters and a body in the vocabulary of :mod:`candelabra_clike.dialect`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from candelabra_clike.dialect import Dialect
from candelabra_clike.library import needed


class KernelParameter(NamedTuple):
    """A parameter of a kernel: a buffer of elements of a type, or a number of that type.

    The types of numbers are ``i32 u32 i64 u64 f32 f64`` and ``INDEX``: no other type can be passed in every language.
    """

    name: str
    type: str
    buffer: bool = False
    written: bool = False

    def declaration(self) -> str:
        if not self.buffer:
            return f"const {self.type} {self.name}"
        return f"GLOBAL {'' if self.written else 'const '}{self.type}* {self.name}"

    def from_slot(self, position: int, index: str) -> str:
        """Return the expression of the argument in ``slots``, for dialects with ``ranges``."""
        if self.buffer:
            return f"({'' if self.written else 'const '}{self.type}*)slots[{position}]"
        return f"*(const {index if self.type == 'INDEX' else self.type}*)(slots + {position})"


def reads(name: str, type: str) -> KernelParameter:
    """Declare a buffer that is only read. It may alias a buffer that is written: there is no ``restrict``."""
    return KernelParameter(name, type, buffer=True)


def writes(name: str, type: str) -> KernelParameter:
    """Declare a buffer that is written and may also be read."""
    return KernelParameter(name, type, buffer=True, written=True)


def number(name: str, type: str = "INDEX") -> KernelParameter:
    """Declare a number. The default type is that of indices: 32 bits, or 64 bits in the wide variant."""
    return KernelParameter(name, type)


COUNT = number("work_items")
"""The last argument of kernels in dialects that launch whole work-groups."""


@dataclass(frozen=True)
class Source:
    """The source of a kernel. Equal sources are compiled once per device.

    ``group`` is the work-group size if the kernel depends on it. Without one, a launch specifies the number of
    work-items and the engine chooses the work-group size. With ``wide`` indices have 64 bits. With ``contract``, ``a *
    b + c`` may be fused.
    """

    name: str
    parameters: tuple[KernelParameter, ...]
    body: str
    group: int | None = None
    wide: bool = False
    contract: bool = False
    float64: bool = False
    """Whether the kernel needs a device with float64; inferred from the types in the text."""

    def __post_init__(self) -> None:
        if not self.float64:
            object.__setattr__(self, "float64", "f64" in self.text or "c128" in self.text)
        object.__setattr__(self, "_hash", hash((self.name, self.parameters, self.body, self.group, self.wide)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    @property
    def index(self) -> str:
        """The type of indices."""
        return "u64" if self.wide else "u32"

    @property
    def text(self) -> str:
        """The entry point and the functions that it needs, without the preamble of the dialect."""
        return needed(self.body) + self.entry(None)

    def entry(self, dialect: Dialect | None, name: str = "") -> str:
        """Return the entry point alone. With a dialect, it has the parameters that the dialect adds; ``name`` replaces
        the name.
        """
        parameters, body = self.parameters, self.body
        if dialect is not None and dialect.rounds_up and self.group is None:
            parameters = (*parameters, COUNT)
            body = f"if (GLOBAL_ID >= {COUNT.name}) return;\n{body}"
        declared = ", ".join(p.declaration() for p in parameters)
        if dialect is not None and dialect.ranges:
            return self._over_range(name or self.name, declared, body)
        group = f"REQUIRED_GROUP({self.group}) " if self.group else ""
        return f"KERNEL {group}void {name or self.name}({declared}) {{\n{body}\n}}\n"

    def _over_range(self, name: str, declared: str, body: str) -> str:
        """Return the entry point for hosts that call it for a range of work-items: a function of one, and its loop."""
        arguments = "".join(f"{p.from_slot(i, self.index)}, " for i, p in enumerate(self.parameters))
        return (
            f"KERNEL void {name}_item({declared}{', ' * bool(declared)}const INDEX global_id, const INDEX global_size) "
            f"{{\n{body}\n}}\n"
            f'__attribute__((visibility("default"))) void {name}(const u64* slots, u64 first, u64 last, u64 total) {{\n'
            f"for (u64 item = first; item < last; ++item) {name}_item({arguments}(INDEX)item, (INDEX)total);\n}}\n"
        )

    def program(self, dialect: Dialect) -> str:
        """Return the complete program in one language."""
        return self.preamble(dialect) + needed(self.body) + self.entry(dialect)

    def preamble(self, dialect: Dialect) -> str:
        """Return the text before functions and entry points.

        The index type comes first: the ids of the dialect use it.
        """
        exact = "" if self.contract else dialect.exact
        return f"{exact}#define INDEX {self.index}\n{dialect.preamble}{dialect.float64 if self.float64 else ''}"

    def types(self) -> Sequence[str]:
        """Return the type of each number among the parameters, and ``""`` for buffers."""
        return ["" if p.buffer else self.index if p.type == "INDEX" else p.type for p in self.parameters]


def units(sources: Iterable[Source], dialect: Dialect, size: int = 60) -> Iterator[tuple[Source, str]]:
    """Combine many kernels into few programs, and yield each with its first source. Sources with other preambles are
    separate.

    Entry points are numbered, because kernels of one name for different layouts may be in one program.
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
