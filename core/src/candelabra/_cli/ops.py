"""``candelabra ops``: list every operator, how each device serves it, and whether it has a derivative. The last line
counts how ``vmap`` serves them.

``candelabra ops --public`` lists the public names instead, each with its kind (operator, overload set or public
callable) and the operators that it represents.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from candelabra._annotations import Any
from candelabra._cli.routes import instances, table
from candelabra._namespace import index
from candelabra._records.lookup import public_names
from candelabra._records.overloads import OverloadSet
from candelabra._records.record import Operator
from candelabra._records.registry import ENTRIES, METHODS, OPERATORS, Entry
from candelabra.errors import BackendError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--device``, ``--missing`` and ``--public``."""
    parser.add_argument("--device", help="only this device, such as acme or acme:1")
    parser.add_argument("--missing", action="store_true", help="only operators that a device lacks or that fall back")
    parser.add_argument("--public", action="store_true", help="list the public names instead, with their operators")


def run(arguments: argparse.Namespace) -> int:
    """Print the table, then how forward mode serves the operators, and the number of operators per route or kind."""
    if arguments.public:
        print_public_names()
        return 0
    try:
        devices = instances(arguments.device)
    except (BackendError, RuntimeError) as error:
        print(f"candelabra: {error}", file=sys.stderr)
        return 1
    tables = {str(instance.device): table(instance) for instance in devices}
    width = max(map(len, OPERATORS), default=8) + 2
    print("operator".ljust(width) + "derivative  " + "".join(name.ljust(14) for name in tables))
    for name, record in sorted(OPERATORS.items()):
        routes = [explanations[name].route for explanations in tables.values()]
        if arguments.missing and not {"fallback", "unsupported"}.intersection(routes):
            continue
        print((name.ljust(width) + derivative(record).ljust(12) + "".join(r.ljust(14) for r in routes)).rstrip())
    print(tangents())
    for name, explanations in tables.items():
        counts: dict[str, int] = {}
        for explanation in explanations.values():
            counts[explanation.route] = counts.get(explanation.route, 0) + 1
        print(f"{name}: " + ", ".join(f"{count} {route}" for route, count in sorted(counts.items())))
    print(batching())
    return 0


def batching() -> str:
    """Return how ``vmap`` serves the operators, in one line, with the names of those that it calls in a loop."""
    from candelabra._transforms import batching_rules  # noqa: F401 - fills the table of rules
    from candelabra._transforms.batching_kernels import family_of

    families: dict[str, list[str]] = {"rule": [], "body": [], "draws": [], "refused": [], "loop": []}
    for name, record in sorted(OPERATORS.items()):
        family = family_of(record)
        if family == "loop" and record.data_dependent:
            family = "refused"
        families[family if family in families else "rule"].append(name)
    looping = families["loop"]
    line = ", ".join(f"{len(names)} {family}" for family, names in families.items())
    return f"vmap: {line}" + (f" ({', '.join(looping)})" if looping else "")


def derivative(record: Operator[..., Any]) -> str:
    """Return whether an operator has a derivative: ``yes``, ``by body``, or ``no``."""
    if record.differentiable:
        return "yes"
    return "by body" if record.body is not None and record.not_differentiable is None else "no"


def tangents() -> str:
    """Return how forward mode serves the operators, in one line, with the names of those that transpose their rule."""
    from candelabra._transforms.tangent_rules import KINDS, kind_of

    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, record in sorted(OPERATORS.items()):
        kinds[kind_of(record)].append(name)
    line = ", ".join(f"{len(names)} {kind}" for kind, names in kinds.items())
    transposed = kinds["transposed"]
    return f"jvp: {line}" + (f" ({', '.join(transposed)})" if transposed else "")


def print_public_names() -> None:
    """Print every function and every method with its kind and its operators."""
    index.load_all()
    rows: dict[str, Entry] = {name: ENTRIES[name] for name in public_names()}
    rows |= {f"Tensor.{name}": entry for name, (entry, _) in METHODS.items() if not entry.is_function}
    width = max(map(len, rows)) + 2
    print("public name".ljust(width) + "kind".ljust(14) + "operators")
    for name, entry in sorted(rows.items()):
        print((name.ljust(width) + kind_of(entry).ljust(14) + behind(entry)).rstrip())
    counts = Counter(map(kind_of, rows.values()))
    print(f"{len(rows)} public names: " + ", ".join(f"{count} {kind}s" for kind, count in sorted(counts.items())))


def kind_of(entry: Entry) -> str:
    """Return the kind of the entry of a public name, in words."""
    if isinstance(entry, Operator):
        return "operator"
    return "overload set" if isinstance(entry, OverloadSet) else "callable"


def behind(entry: Any) -> str:
    """Return the operators of an entry: a record itself, or the members of a set; none for a public callable."""
    if isinstance(entry, OverloadSet):
        return ", ".join(member.name for member, _ in entry.members)
    return entry.name if isinstance(entry, Operator) else ""
