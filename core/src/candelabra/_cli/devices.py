"""``candelabra devices``: print one line per device, with the facts that its backend reports."""

from __future__ import annotations

import argparse

from candelabra._plugins import registry
from candelabra._plugins.examining import SECONDS, examine_isolated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--timeout``."""
    parser.add_argument(
        "--timeout",
        type=float,
        default=SECONDS,
        metavar="SECONDS",
        help="the time that each plugin has to load and to list its devices (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the devices. Return 1 if a backend failed or no device exists, else 0."""
    lines: list[str] = []
    failed = False
    for found in examine_isolated(registry.plugins().values(), arguments.timeout):
        failed |= bool(found.failure)
        lines += [f"{name}  {line}" for name, _, line in found.devices]
        if not found.devices:
            lines.append(f"{found.name}: {found.failure or found.unavailable or 'no devices'}")
    print("\n".join(lines) if lines else registry.nothing_installed())
    return int(failed or not lines)
