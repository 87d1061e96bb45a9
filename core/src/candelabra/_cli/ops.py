"""``candelabra ops``: every operator, how each device serves it, and whether it has a derivative."""

from __future__ import annotations

import argparse
import sys

from candelabra._annotations import Any
from candelabra._cli.routes import instances, table
from candelabra._records.record import OPERATORS, Operator
from candelabra.errors import BackendError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--device`` and ``--missing``."""
    parser.add_argument("--device", help="only this device, as in acme or acme:1")
    parser.add_argument("--missing", action="store_true", help="only operators that a device lacks or that fall back")


def run(arguments: argparse.Namespace) -> int:
    """Print the table and, under it, how often each route occurs."""
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
    for name, explanations in tables.items():
        counts: dict[str, int] = {}
        for explanation in explanations.values():
            counts[explanation.route] = counts.get(explanation.route, 0) + 1
        print(f"{name}: " + ", ".join(f"{count} {route}" for route, count in sorted(counts.items())))
    return 0


def derivative(record: Operator[..., Any]) -> str:
    """Whether an operator has a derivative: ``yes``, ``by body``, or ``no``."""
    if record.differentiable:
        return "yes"
    return "by body" if record.body is not None and record.not_differentiable is None else "no"
