"""``candelabra doctor``: report the state of every plugin, with the traceback of each failure. It never raises."""

from __future__ import annotations

import argparse
import os
import platform

from candelabra._cli.devices import add_arguments as add_timeout
from candelabra._cli.devices import contributed
from candelabra._cli.main import COMMANDS
from candelabra._plugins import contributed_kernels, contributions, registry
from candelabra._plugins.describing import summary
from candelabra._plugins.examining import Examination, examine_isolated
from candelabra._version import __version__
from candelabra.backend import API_VERSION
from candelabra.errors import BackendError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--timeout``, as ``candelabra devices`` has it."""
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Return 1 if a plugin failed or none is installed, else 0."""
    print(f"candelabra {__version__}, core API {API_VERSION[0]}.{API_VERSION[1]}, Python {platform.python_version()}")
    if registry.allowed_names() is not None:
        print(f"{registry.ENVIRONMENT}={os.environ[registry.ENVIRONMENT]}: only these backends are seen")
    if contributed_kernels.allowed_distributions() is not None:
        value = os.environ[contributed_kernels.ENVIRONMENT]
        print(f"{contributed_kernels.ENVIRONMENT}={value}: only these distributions contribute kernels")
    plugins = registry.plugins()
    if not plugins:
        print(registry.nothing_installed())
        return 1
    examinations = examine_isolated(plugins.values(), arguments.timeout)
    healthy = [_report(plugin, each) for plugin, each in zip(plugins.values(), examinations, strict=True)]
    for stray in contributed_kernels.installed():
        if stray.device_type not in plugins:
            print(
                f"{stray.distribution} contributes kernels to device type {stray.device_type!r}, which has no backend"
            )
    print(f"reference device: {_reference()}")
    found, problems = contributions.commands(tuple(COMMANDS))
    if found:
        print(f"commands of plugins: {', '.join(sorted(found))}")
    hooks = {name: error for name, error in problems.items() if name not in plugins or plugins[name].error is None}
    for name, error in hooks.items():
        print(f"commands of plugin {name!r} failed: {summary(error)}")
    return int(not all(healthy) or bool(hooks))


def _report(plugin: registry.Plugin, examination: Examination) -> bool:
    """Print the steps and devices of one plugin, and return whether it works. A plugin without a device works."""
    entry = "added by hand" if plugin.entry is None else f"{plugin.entry.value}, distribution {plugin.distribution}"
    print(f"\n{plugin.name} ({entry})")
    steps = ", ".join(examination.steps)
    if examination.failure and not examination.window:
        print(f"  {steps}, then failed: {examination.failure}")
    else:
        print(f"  {steps}" + (f"; built for core API {examination.window}" if examination.window else ""))
    if examination.failure:
        if examination.window:
            print(f"  {examination.failure}")
        _indented(examination.traceback)
        return False
    for name, description, _ in examination.devices:
        print(f"  {name}  {description}")
    if not examination.devices:
        print(f"  no devices: {examination.unavailable or 'the backend gives no reason'}")
    for each in examination.contributions:
        print(f"  {contributed(each)} ({each.source})")
        _indented(each.traceback)
    return not any(each.failure for each in examination.contributions)


def _indented(text: str) -> None:
    for line in text.rstrip().splitlines():
        print(f"    {line}")


def _reference() -> str:
    try:
        return str(registry.reference_device())
    except BackendError as error:
        return f"none: {error}"
