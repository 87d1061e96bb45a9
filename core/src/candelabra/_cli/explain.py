"""``candelabra explain NAME``: print the numbered steps of dispatch, and the step that serves an operator.

For an overload set it prints the operator that serves each signature; for a public callable, the operators that its
code calls. With ``--graph``, see :mod:`candelabra._cli.explain_graph`.
"""

from __future__ import annotations

import argparse
import difflib
import sys

from candelabra._annotations import Any
from candelabra._cli.routes import instances, typical_dtype
from candelabra._device import Instance
from candelabra._dispatch.explain import explain_key
from candelabra._namespace.calls import called_by
from candelabra._records.callables import PublicCallable
from candelabra._records.lookup import entry_named, public_names
from candelabra._records.overloads import OverloadSet
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS, title_of
from candelabra.dtypes import BY_NAME


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name, ``--device`` and ``--dtype``."""
    parser.add_argument("name", metavar="NAME", help="an operator or a public name, as `candelabra ops` lists them")
    parser.add_argument("--device", help="only this device, such as acme or acme:1; by default all")
    parser.add_argument(
        "--graph", action="store_true", help="NAME is a Python program: run it and show its compiled functions"
    )
    parser.add_argument("--dtype", choices=sorted(BY_NAME), help="the dtype of the tensors; by default a typical one")


def run(arguments: argparse.Namespace) -> int:
    """Print how a name is served. Return 0, 1 for an unavailable device or dtype, or 2 for an unknown name."""
    name: str = arguments.name
    if arguments.graph:
        from candelabra._cli.explain_graph import explain_graphs

        return explain_graphs(name)
    entry: Any = entry_named(name) or OPERATORS.get(name)
    if entry is None:
        close = difflib.get_close_matches(name, {*OPERATORS, *public_names()})
        advice = f"; did you mean {' or '.join(close)}?" if close else "; `candelabra ops` lists them"
        print(f"candelabra: there is no operator and no public name {name!r}{advice}", file=sys.stderr)
        return 2
    if isinstance(entry, PublicCallable):
        explain_callable(entry)
        return 0
    try:
        if isinstance(entry, OverloadSet):
            explain_overloads(entry, arguments.device, arguments.dtype)
        else:
            explain_operator(entry, instances(arguments.device), arguments.dtype)
    except RuntimeError as error:  # no such device, or a dtype that it does not support
        print(f"candelabra: {error}", file=sys.stderr)
        return 1
    return 0


def explain_operator(record: Operator[..., Any], devices: list[Instance], dtype: str | None) -> None:
    """Print the steps of a call per device, without and with a gradient."""
    for instance in devices:
        d = typical_dtype(record, instance, dtype)
        print(f"{record.name} on {instance.device}, {d.name}")
        print("without a gradient:\n" + str(explain_key(record, instance, d, False)))
        if d.is_floating_point or d.is_complex:
            print("with a gradient:\n" + str(explain_key(record, instance, d, True)))


def explain_overloads(overloads: OverloadSet, device: str | None, dtype: str | None) -> None:
    """Print the member that serves each signature and, if a device is named, the steps of each member."""
    devices = instances(device) if device is not None else []
    title = title_of(overloads)
    print(f"{title} is an overload set: the first of its members that a call fits serves it")
    for signature in overloads.signatures():
        kind = "operator" if isinstance(signature.entry, Operator) else "public callable"
        print(f"  {title}{signature}\n      {kind} {signature.entry.name}")
    for member, _ in overloads.members if devices else ():
        print()
        if isinstance(member, Operator):
            explain_operator(member, devices, dtype)
        else:
            explain_callable(member)


def explain_callable(entry: PublicCallable) -> None:
    """Print that a name belongs to a public callable, and the operators and public names that its code calls."""
    title = title_of(entry)
    (signature,) = entry.signatures()
    print(f"{title} is a public callable: it has no kernel of its own, what it calls has")
    print(f"  {title}{'' if entry.is_property else signature}")
    print(f"  it names {', '.join(called_by(entry)) or 'no operator'}")
    print(f"candelabra.explain({title!r}, ...) shows how those of a call are served")
