"""Making a fake device there: for a block, or for a process from what was written on its command line.

``fake:1`` is the second device of a fake accelerator with the defaults; after a question mark come its options, with
commas between them: ``fake?immutable,-float64,-cumsum``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from candelabra import device
from candelabra.dtypes import BY_NAME
from candelabra.errors import BackendError
from candelabra.library import OPERATORS, plugins

from candelabra_conformance.fake.backend import FakeAccelerator

NAME: Final = "fake"
_FLAGS: Final = {
    "immutable": ("immutable", True),
    "synchronous": ("asynchronous", False),
    "unpoisoned": ("poison", False),
}
_NUMBERS: Final = ("devices", "capacity", "fail_allocation_after")


class FakeDeviceError(BackendError, ValueError):
    """A fake device that cannot be had as it was asked for."""


@contextmanager
def installed(name: str = NAME, **options: Any) -> Iterator[FakeAccelerator]:
    """A fake accelerator inside a ``with`` block; options are those of :class:`FakeAccelerator`.

    ``BackendError`` where the device type has an owner.
    """
    made = FakeAccelerator(name, **options)
    remove = plugins.add_backend(made)
    try:
        yield made
    finally:
        remove()


class Wanted(NamedTuple):
    """What a command line asks for: a device, and the options of its fake accelerator."""

    device: device
    options: dict[str, Any]


def parse(text: str) -> Wanted:
    """Read ``name[:index][?option,…]``.

    Options: ``immutable``, ``synchronous``, ``unpoisoned``, ``devices=N``, ``capacity=BYTES``,
    ``fail_allocation_after=N``, ``-NAME`` for a dtype or a kernel that is missing, ``~NAME`` for a dtype that is only
    held. ``FakeDeviceError`` for anything else, ``RuntimeError`` for what is no device's name.
    """
    name, _, written = text.partition("?")
    options: dict[str, Any] = {}
    for option in filter(None, written.split(",")):
        key, value = _option(option)
        if key in ("missing_dtypes", "storage_only", "missing_kernels"):
            options[key] = (*options.get(key, ()), value)
        else:
            options[key] = value
    return Wanted(device(name), options)


def _option(text: str) -> tuple[str, Any]:
    if text in _FLAGS:
        return _FLAGS[text]
    key, _, number = text.partition("=")
    if key in _NUMBERS and number.isdecimal():
        return key, int(number)
    sign, name = text[0], text[1:]
    if name in BY_NAME and sign in "-~":
        return ("missing_dtypes" if sign == "-" else "storage_only"), name
    if sign == "-" and name in OPERATORS:
        return "missing_kernels", name
    raise FakeDeviceError(
        f"a fake device has no option {text!r}: it knows {', '.join(_FLAGS)}, {', '.join(f'{n}=N' for n in _NUMBERS)}, "
        "-DTYPE, ~DTYPE (held, not computed in) and -OPERATOR"
    )


def provide(text: str) -> str:
    """See to it that a device is there, and return its name without options.

    A fake accelerator is installed for the rest of the process where the name is ``fake`` or options are given, unless
    one with the same options is there. Any other name is handed back as it is. ``FakeDeviceError`` where options
    are given and the device type belongs to something else.
    """
    wanted = parse(text)
    kind = wanted.device.type
    owner = plugins.plugins().get(kind)
    if owner is None and (kind == NAME or wanted.options):
        made = FakeAccelerator(kind, **wanted.options)
        provided[kind] = Provided(made, wanted.options, plugins.add_backend(made))
    elif owner is not None and wanted.options:
        there = provided.get(kind)
        if there is None or there.backend is not owner.backend:
            raise FakeDeviceError(f"options were given for device type {kind!r}, but it has an owner that takes none")
        if there.options != wanted.options:
            raise FakeDeviceError(f"device type {kind!r} is there already, with other options: {there.options}")
    return str(wanted.device)


class Provided(NamedTuple):
    """A fake accelerator that :func:`provide` has installed, its options, and what removes it."""

    backend: FakeAccelerator
    options: dict[str, Any]
    remove: Callable[[], None]


provided: Final[dict[str, Provided]] = {}
"""By device type, what :func:`provide` has installed in this process."""
