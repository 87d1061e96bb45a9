"""The registries: every operator by its name, and every public name, ``{"add": entry, "linalg.inv": entry}``.

An entry is an operator's record, an overload set over several records, or a public callable. Each knows the function
that users call (:meth:`Entry.form`), its documentation and its signatures; stubs, documentation, conformance and
``explain`` are computed from them.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._namespace import index
from candelabra._records.schema import REQUIRED, Parameter

if TYPE_CHECKING:
    from candelabra._records.record import Operator

OPERATORS: Final[index.Declared[Operator[..., Any]]] = index.Declared()
"""Every operator by name. Declarations add to it when one of their names is used first, and plugins do."""

ENTRIES: Final[dict[str, Entry]] = {}
"""Every entry of the modules that are imported so far, by public name and by alias."""
METHODS: Final[dict[str, tuple[Entry, str]]] = {}
"""Every method of Tensor by name: the entry and the form."""
ADDED: Final[list[Callable[[Entry], Callable[[], None]]]] = []
"""Functions that are called with each new entry. Each returns its undo function."""


USES: Final = ("elements", "memory", "dtype", "object")
"""What a call uses of its tensors: their elements; the place of these in memory (address, strides, size), or another
memory that it gives them; only dtype and device; or only the object, its history and attributes."""

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
    """One signature of a public name: parameters, the annotation of the result, and the entry that serves it."""

    __slots__ = ("parameters", "returns", "entry")

    def __init__(self, parameters: tuple[Parameter, ...], returns: str, entry: Entry) -> None:
        self.parameters = parameters
        self.returns = returns
        self.entry = entry

    def __str__(self) -> str:
        """Return text such as ``(input: Tensor, dim: Dim, keepdim: bool = False, *, out=None) -> Tensor``."""
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


class Entry:
    """The declaration of a public name: a record, an overload set or a public callable."""

    def __init__(
        self,
        name: str,
        doc: str,
        declared_in: str,
        *,
        is_function: bool = True,
        method: bool | str = True,
        is_property: bool = False,
        public: bool = True,
        namespace: str = "",
        aliases: tuple[str, ...] = (),
        uses: str = "elements",
    ) -> None:
        if uses not in USES:
            raise ValueError(f"{name}: expected uses= to be one of {', '.join(USES)}, got {uses!r}")
        self.name: Final = name
        """The Python identifier: ``linalg_inv`` for ``linalg.inv``."""
        self.title = name
        """What errors call the function: its name, or that of the overload set that it is a member of."""
        self.doc: Final = doc
        """The documentation."""
        self.declared_in: Final = declared_in
        """The module that declares the entry."""
        self.is_function: Final = is_function
        """False for an entry that is only a method."""
        self.method: Final = method if not namespace or isinstance(method, str) else False
        self.is_property: Final = is_property
        """Whether its methods are properties."""
        self.public: Final = public
        """False for entries that have no public name of their own."""
        self.namespace: Final = namespace
        self.public_name: Final = dotted(name, namespace)
        """The name of the function, with its namespace."""
        self.aliases: Final = aliases
        """Further public names, ``"arccos"`` or ``"special.expit"``. A name without a dot is also a method."""
        self.uses: Final = uses
        """One of :data:`USES`."""

    def method_names(self) -> list[str]:
        """Return the names of the entry's methods: its own name and its aliases without a dot.

        A function of a namespace is not a method under its own name, but it is under an alias of the top namespace.
        """
        own = [self.method if isinstance(self.method, str) else self.name] if self.method else []
        aliases = [alias for alias in self.aliases if "." not in alias] if self.method or self.namespace else []
        return own + aliases

    if TYPE_CHECKING:  # each kind of entry defines these

        def methods(self) -> dict[str, str]:
            """Return ``{method of Tensor: form}``."""
            ...

        def form(self, kind: str) -> Callable[..., Any]:
            """Return the ``"function"`` or the ``"inplace"`` form."""
            ...

        def signatures(self) -> tuple[Signature, ...]:
            """Return the signatures of the function, in the order in which they are tried."""
            ...


def add(entry: Entry) -> None:
    """Add a public name with its aliases and methods.

    Raises ``ValueError`` if one of the names has an entry already.
    """
    functions = [entry.public_name, *entry.aliases] if entry.public and entry.is_function else []
    methods = entry.methods()
    homes = [index.FUNCTIONS_IN.get(name) for name in functions] + [index.METHODS_IN.get(name) for name in methods]
    for home in homes:
        if home is not None and home != entry.declared_in:
            index.load(home)  # the index assigns the name to that module, so its declaration takes precedence
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

    index.note(entry.declared_in, undo)


def outline(name: str) -> index.OperatorOutline:
    """Return the outline of an operator: that of the index, or else of its record. Raise KeyError if there is none.

    The module of an operator in the index is not imported.
    """
    found = index.OUTLINES.get(name)
    if found is None:
        record = OPERATORS[name]
        found = index.OperatorOutline(len(record.schema.parameters), record.view, record.inplace)
    return found


def title_of(entry: Entry) -> str:
    """Return the title of an entry: its public name ``linalg.inv``, or ``Tensor.T`` if it is only a method."""
    return entry.public_name if entry.is_function else f"Tensor.{next(iter(entry.methods()))}"


def dotted(name: str, namespace: str) -> str:
    """Return ``linalg.inv`` for ``linalg_inv`` in the namespace ``linalg``, or the name itself without a namespace."""
    return f"{namespace}.{name.removeprefix(namespace.replace('.', '_') + '_')}" if namespace else name
