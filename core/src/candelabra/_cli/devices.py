"""``candelabra devices``: print one line per device, with the facts that its backend reports and who contributes
kernels."""

from __future__ import annotations

import argparse

from candelabra._plugins import registry
from candelabra._plugins.examining import SECONDS, ExaminedContribution, examine_isolated


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
        failed |= bool(found.failure) or any(each.failure for each in found.contributions)
        serving = [each for each in found.contributions if not each.failure and not each.note]
        more = "".join(f", {contributed(each)}" for each in serving)
        lines += [f"{name}  {line}{more}" for name, _, line in found.devices]
        lines += [f"{found.name}: {contributed(each)}" for each in found.contributions if each not in serving]
        if not found.devices:
            lines.append(f"{found.name}: {found.failure or found.unavailable or 'no devices'}")
    print("\n".join(lines) if lines else registry.nothing_installed())
    return int(failed or not lines)


def contributed(examined: ExaminedContribution) -> str:
    """Return the words about the kernels that a distribution contributes to a device."""
    if examined.failure:
        return f"the kernels of {examined.distribution} failed to load: {examined.failure}"
    if examined.note:
        return f"no kernels of {examined.distribution}: {examined.note}"
    order = f", precedence {examined.precedence}" if examined.precedence else ""
    plural = "s" * (examined.kernels != 1)
    return f"{examined.kernels} kernel{plural} contributed by {examined.distribution}{order}"
