"""``candelabra explain OP``: the numbered steps of dispatch, and which of them serves the operator."""

from __future__ import annotations

import argparse
import difflib
import sys

from candelabra._cli.routes import instances, typical_dtype
from candelabra._dispatch.explain import explain_key
from candelabra._namespace.publishing import operator_named, public_function
from candelabra._records.record import OPERATORS
from candelabra.dtypes import BY_NAME


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The operator, ``--device`` and ``--dtype``."""
    parser.add_argument("operator", metavar="OP", help="an operator's name, as `candelabra ops` lists them")
    parser.add_argument("--device", help="only this device, as in acme or acme:1; all otherwise")
    parser.add_argument("--dtype", choices=sorted(BY_NAME), help="the dtype of the tensors; a usual one otherwise")


def run(arguments: argparse.Namespace) -> int:
    """Print the steps for inference and with a gradient, per device."""
    record = operator_named(arguments.operator)
    if record is None and public_function(arguments.operator) is not None:
        print(
            f"{arguments.operator} is a function over several operators, which depend on its arguments: "
            f"candelabra.explain({arguments.operator!r}, ...) shows those of a call"
        )
        return 0
    if record is None:
        close = difflib.get_close_matches(arguments.operator, OPERATORS)
        advice = f"; did you mean {' or '.join(close)}?" if close else "; `candelabra ops` lists them"
        print(f"candelabra: there is no operator {arguments.operator!r}{advice}", file=sys.stderr)
        return 2
    try:
        devices = instances(arguments.device)
        for instance in devices:
            d = typical_dtype(record, instance, arguments.dtype)
            print(f"{record.name} on {instance.device}, {d.name}")
            print("without a gradient:\n" + str(explain_key(record, instance, d, False)))
            if d.is_floating_point or d.is_complex:
                print("with a gradient:\n" + str(explain_key(record, instance, d, True)))
    except RuntimeError as error:  # no such device, or a dtype that it does not hold
        print(f"candelabra: {error}", file=sys.stderr)
        return 1
    return 0
