"""``candelabra doctor``: report the state of every plugin, with the traceback of each failure. It never raises."""

from __future__ import annotations

import argparse
import os
import platform
import traceback

from candelabra._cli.main import COMMANDS
from candelabra._plugins import contributions, registry
from candelabra._version import __version__
from candelabra.backend import API_VERSION
from candelabra.errors import BackendError, DeviceUnavailable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the report. Return 1 if a plugin failed or none is installed, else 0."""
    print(f"candelabra {__version__}, core API {API_VERSION[0]}.{API_VERSION[1]}, Python {platform.python_version()}")
    if registry.allowed_names() is not None:
        print(f"{registry.ENVIRONMENT}={os.environ[registry.ENVIRONMENT]}: only these backends are seen")
    plugins = registry.plugins()
    if not plugins:
        print(registry.nothing_installed())
        return 1
    healthy = [_examine(plugin) for plugin in plugins.values()]
    print(f"reference device: {_reference()}")
    found, problems = contributions.commands(tuple(COMMANDS))
    if found:
        print(f"commands of plugins: {', '.join(sorted(found))}")
    hooks = {name: error for name, error in problems.items() if name not in plugins or plugins[name].error is None}
    for name, error in hooks.items():
        print(f"commands of plugin {name!r} failed: {type(error).__name__}: {error}")
    return int(not all(healthy) or bool(hooks))


def _examine(plugin: registry.Plugin) -> bool:
    """Load one plugin, print its steps, and return whether it works. A plugin without a device works."""
    entry = "added by hand" if plugin.entry is None else f"{plugin.entry.value}, distribution {plugin.distribution}"
    print(f"\n{plugin.name} ({entry})")
    try:
        backend, _ = registry.load(plugin)
    except DeviceUnavailable as reason:
        print(f"  {', '.join(plugin.steps)}")
        print(f"  no devices: {reason}")
        return True
    except BackendError:
        print(f"  {', '.join(plugin.steps)}, then failed: {type(plugin.error).__name__}: {plugin.error}")
        _indented(plugin.traceback)
        return False
    low, high = backend.api
    print(f"  {', '.join(plugin.steps)}; built for core API {low[0]}.{low[1]} to {high[0]}.{high[1]}")
    try:
        found = backend.devices()
    except DeviceUnavailable as reason:
        print(f"  no devices: {reason}")
        return True
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        print(f"  listing its devices failed: {type(error).__name__}: {error}")
        _indented(traceback.format_exc())
        return False
    for index, info in enumerate(found):
        print(f"  {plugin.name}:{index}  {info.name}")
    if not found:
        print("  no devices: the backend gives no reason")
    return True


def _indented(text: str) -> None:
    for line in text.rstrip().splitlines():
        print(f"    {line}")


def _reference() -> str:
    try:
        return str(registry.reference_device())
    except BackendError as error:
        return f"none: {error}"
