"""Overload sets: one public name over several records.

``torch.max`` is three operators: the maximum of all elements, the elementwise maximum of two tensors, and the maximum
along a dim with its index. Here each is a record, and :func:`overloads` gives them the public name. The set has no key
and no kernel of its own: its entry selects a record by the types of the arguments and calls the record's entry.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, Final
from candelabra._codegen.overloading import compile_overloads
from candelabra._namespace.index import await_import
from candelabra._records.callables import PublicCallable
from candelabra._records.registry import Entry, Signature, add
from candelabra._records.schema import Parameter


class OverloadSet(Entry):
    """One public name for several entries. The arguments of a call select one of them."""

    def __init__(
        self,
        name: str,
        members: tuple[Any, ...],
        *,
        doc: str = "",
        inplace: bool = False,
        declared_in: str = "",
        **names: Any,
    ) -> None:
        self.members: Final[tuple[tuple[Any, tuple[Parameter, ...]], ...]] = tuple([_member(name, m) for m in members])
        """Each entry with the parameters that its overload accepts."""
        of_members = dict.fromkeys(entry.doc for entry, _ in self.members)
        super().__init__(name, doc or "\n\n".join(of_members), declared_in, **names)
        self.inplace: Final = inplace
        self._forms: dict[str, Callable[..., Any]] = {}
        for entry, _ in self.members:
            if not entry.public:
                entry.title = name

    def methods(self) -> dict[str, str]:
        """Return ``{method of Tensor: form}``."""
        names = self.method_names()
        return dict.fromkeys(names, "function") | {f"{name}_": "inplace" for name in names if self.inplace}

    def form(self, kind: str) -> Callable[..., Any]:
        """Return the entry that selects an overload, for the ``"function"`` or the ``"inplace"`` form."""
        try:
            return self._forms[kind]
        except KeyError:
            await_import(self.declared_in)
            compiled = self._forms[kind] = compile_overloads(self, kind)
            return compiled

    @property
    def function(self) -> Callable[..., Any]:
        """Return the function that users call."""
        return self.form("function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.form("function")(*args, **kwargs)

    def signatures(self) -> tuple[Signature, ...]:
        """Return one signature per overload, in the order in which they are tried."""
        return tuple([
            Signature(parameters, entry.signatures()[0].returns, entry) for entry, parameters in self.members
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"<overload set {self.public_name}: {', '.join(entry.name for entry, _ in self.members)}>"


def _member(name: str, member: Any) -> tuple[Any, tuple[Parameter, ...]]:
    """Check a member, an entry or ``(entry, "names of parameters")``, and return (entry, parameters)."""
    entry, words = member if isinstance(member, tuple) else (member, None)
    if not hasattr(entry, "signatures"):  # a plain function: an overload that is not a record
        entry = PublicCallable(entry, public=False)
    parameters: tuple[Parameter, ...] = entry.signatures()[0].parameters
    if words is None:
        return entry, parameters
    accepted = words.split()
    unknown = set(accepted) - {p.name for p in parameters}
    if unknown:
        raise TypeError(
            f"overload set {name}: {entry.name}({', '.join(p.name for p in parameters)}) has no parameter "
            f"{', '.join(sorted(unknown))}"
        )
    return entry, tuple([p for p in parameters if p.name in accepted])


def overloads(name: str, *members: Any, **options: Any) -> OverloadSet:
    """Give several records one public name: ``max = overloads("max", (amax, "input"), maximum, max_dim)``.

    A member is a record, a typed function (an overload that is not a record), or ``(member, "input dim")`` if the
    overload accepts only some of its parameters. Members are tried in the given order; the first one whose parameters
    fit the call serves it. Options are ``doc`` (by default the members' documentation), ``inplace`` (the in-place form
    selects among the members' in-place forms), ``is_function``, ``method``, ``namespace`` and ``aliases``, as for
    records.

    Raises ``ValueError`` if the name exists already, ``TypeError`` for a parameter that a member does not have.
    """
    import sys

    module = sys._getframe(1).f_globals["__name__"]
    made = OverloadSet(name, members, declared_in=module, **options)
    add(made)
    return made
