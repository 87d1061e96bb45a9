"""The one registry of public names: ``{"add": entry, "linalg.inv": entry}``.

An entry is an operator's record, an overload set over several records, or a public callable. Each knows the function
that users call (:meth:`Entry.form`), its documentation and its signatures; stubs, documentation, conformance and
``explain`` are computed from them.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra import _journal as journal
from candelabra._annotations import Any, Final, Protocol
from candelabra._namespace import index
from candelabra._records.schema import REQUIRED, Parameter

ENTRIES: Final[dict[str, Entry]] = {}
"""Every entry by public name, of the modules that are imported so far. Aliases stand beside the names."""
METHODS: Final[dict[str, tuple[Entry, str]]] = {}
"""Every method of Tensor by name: the entry, and which of its forms it is."""
ADDED: Final[list[Callable[[Entry], Callable[[], None]]]] = []
"""Functions to call with each entry that is added; each returns how to withdraw it."""


FACTORY_KEYWORDS: Final = (
    "out=None", "layout=None", "pin_memory=False", "requires_grad=False", "memory_format=None",
)  # fmt: skip
"""The keywords that a factory's entry adds."""


def factory_keywords(entry: Any) -> list[str]:
    """The keywords that the grammar adds to a factory's entry: all, or those that the declaration names.

    Without those that the function declares itself.
    """
    declared = {p.name for p in entry.parameters}
    named = [(keyword.partition("=")[0], keyword) for keyword in FACTORY_KEYWORDS]
    return [
        keyword for name, keyword in named if name not in declared and (entry.factory is True or name in entry.factory)
    ]


class Signature:
    """One way of calling a public name: parameters, the annotation of the result, and who serves it."""

    __slots__ = ("parameters", "returns", "entry")

    def __init__(self, parameters: tuple[Parameter, ...], returns: str, entry: Entry) -> None:
        self.parameters = parameters
        self.returns = returns
        self.entry = entry

    def __str__(self) -> str:
        """``(input: Tensor, dim: Dim, keepdim: bool = False, *, out=None) -> Tensor``."""
        words: list[str] = []
        keyword_only = False
        for p in self.parameters:
            if p.keyword_only and not keyword_only:
                words.append("*")
            keyword_only |= p.keyword_only or p.variadic
            default = "" if p.default is REQUIRED else f" = {p.default!r}"
            words.append(f"{'*' * p.variadic}{p.name}: {p.annotation}{default}")
        if getattr(self.entry, "inplace_argument", False):
            words.append("inplace: bool = False")
        added = ["out=None"] if getattr(self.entry, "out", False) else []
        if getattr(self.entry, "factory", False):
            added = factory_keywords(self.entry)
        return f"({', '.join([*words, *(['*'] if added and not keyword_only else []), *added])}) -> {self.returns}"


class Entry(Protocol):
    """What stands behind a public name."""

    @property
    def name(self) -> str:
        """The Python identifier: ``linalg_inv`` of ``linalg.inv``."""
        ...

    @property
    def public_name(self) -> str:
        """The name of the function, with its namespace."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further public names; one without a dot is a method's name too."""
        ...

    @property
    def doc(self) -> str:
        """The documentation."""
        ...

    @property
    def public(self) -> bool:
        """False for records that have no public name of their own."""
        ...

    @property
    def is_function(self) -> bool:
        """False for what is a method only."""
        ...

    @property
    def is_property(self) -> bool:
        """Whether its methods are properties."""
        ...

    @property
    def declared_in(self) -> str:
        """The module that declares it."""
        ...

    def methods(self) -> dict[str, str]:
        """``{method of Tensor: form}``."""
        ...

    def form(self, kind: str) -> Callable[..., Any]:
        """The ``"function"``, or the ``"inplace"`` form."""
        ...

    def signatures(self) -> tuple[Signature, ...]:
        """Every way of calling the function, in the order in which they are tried."""
        ...


def add(entry: Entry) -> None:
    """Enter a public name with its aliases and methods.

    Raises ``ValueError`` when a name is taken: a public name has one entry.
    """
    functions = [entry.public_name, *entry.aliases] if entry.public and entry.is_function else []
    methods = entry.methods()
    homes = [index.FUNCTIONS_IN.get(name) for name in functions] + [index.METHODS_IN.get(name) for name in methods]
    for home in homes:
        if home is not None and home != entry.declared_in:
            index.load(home)  # the name is that module's: what it declares stands first
    taken = {name: ENTRIES[name] for name in functions if name in ENTRIES}
    taken |= {f"Tensor.{name}": METHODS[name][0] for name in methods if name in METHODS}
    if taken:
        name, first = next(iter(taken.items()))
        raise ValueError(
            f"the public name {name!r} is declared twice: first in {first.declared_in}, now in {entry.declared_in}"
        )
    withdrawals = [publish(entry) for publish in ADDED]
    ENTRIES.update(dict.fromkeys(functions, entry))
    METHODS.update({method: (entry, form) for method, form in methods.items()})

    def undo() -> None:
        for name in functions:
            ENTRIES.pop(name, None)
        for method in methods:
            METHODS.pop(method, None)
        for withdraw in withdrawals:
            withdraw()

    journal.note(undo)


def title_of(entry: Entry) -> str:
    """The name under which users find an entry: ``linalg.inv``, or ``Tensor.T`` of what is a method only."""
    return entry.public_name if entry.is_function else f"Tensor.{next(iter(entry.methods()))}"


def method_names(name: str, method: bool | str, namespace: str, aliases: tuple[str, ...]) -> list[str]:
    """The names under which something is a method: its own, and its aliases without a dot.

    A function of a namespace is no method under its own name, but it is under an alias of the top namespace.
    """
    own = [method if isinstance(method, str) else name] if method else []
    return [*own, *(alias for alias in aliases if "." not in alias)] if method or namespace else []


def dotted(name: str, namespace: str) -> str:
    """``linalg.inv`` of ``linalg_inv`` in the namespace ``linalg``; the name itself where there is no namespace."""
    return f"{namespace}.{name.removeprefix(namespace.replace('.', '_') + '_')}" if namespace else name
