"""Install a fake device for a ``with`` block, or for the whole process from a command line.

``fake:1`` is the second device of a fake accelerator with the default options. Other options follow a question mark,
separated by commas: ``fake?immutable,-float64,-cumsum``.
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
    """Raised if a fake device cannot have the requested options."""


@contextmanager
def installed(name: str = NAME, **options: Any) -> Iterator[FakeAccelerator]:
    """Install a fake accelerator for a ``with`` block. The options are those of :class:`FakeAccelerator`.

    Raises ``BackendError`` if the device type already exists.
    """
    made = FakeAccelerator(name, **options)
    remove = plugins.add_backend(made)
    try:
        yield made
    finally:
        remove()


class FakeDeviceRequest(NamedTuple):
    """A request of a command line: a device, and the options of its fake accelerator."""

    device: device
    options: dict[str, Any]


def parse(text: str) -> FakeDeviceRequest:
    """Parse ``name[:index][?option,…]``.

    Options: ``immutable``, ``synchronous``, ``unpoisoned``, ``devices=N``, ``capacity=BYTES``,
    ``fail_allocation_after=N``, ``-NAME`` for a missing dtype or kernel, ``~NAME`` for a dtype that is only stored.
    Raises ``FakeDeviceError`` for any other option, and ``RuntimeError`` for an invalid device name.
    """
    name, _, written = text.partition("?")
    options: dict[str, Any] = {}
    for option in filter(None, written.split(",")):
        key, value = _option(option)
        if key in ("missing_dtypes", "storage_only", "missing_kernels"):
            options[key] = (*options.get(key, ()), value)
        else:
            options[key] = value
    return FakeDeviceRequest(device(name), options)


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
        f"a fake device has no option {text!r}: it has the options {', '.join(_FLAGS)}, "
        f"{', '.join(f'{n}=N' for n in _NUMBERS)}, -DTYPE, ~DTYPE (held, not computed in) and -OPERATOR"
    )


def provide(text: str) -> str:
    """Ensure that a device exists, and return its name without options.

    A fake accelerator is installed for the rest of the process if the name is ``fake`` or options are given, unless one
    with the same options is installed. Any other name is returned unchanged. Raises ``FakeDeviceError`` if options are
    given for a device type that another plugin owns.
    """
    request = parse(text)
    kind = request.device.type
    owner = plugins.plugins().get(kind)
    if owner is None and (kind == NAME or request.options):
        made = FakeAccelerator(kind, **request.options)
        provided[kind] = Provided(made, request.options, plugins.add_backend(made))
    elif owner is not None and request.options:
        existing = provided.get(kind)
        if existing is None or existing.backend is not owner.backend:
            raise FakeDeviceError(
                f"options were given for device type {kind!r}, but another plugin owns it and accepts none"
            )
        if existing.options != request.options:
            raise FakeDeviceError(f"device type {kind!r} already exists with other options: {existing.options}")
    return str(request.device)


class Provided(NamedTuple):
    """A fake accelerator that :func:`provide` has installed, its options, and the function that removes it."""

    backend: FakeAccelerator
    options: dict[str, Any]
    remove: Callable[[], None]


provided: Final[dict[str, Provided]] = {}
"""The accelerators that :func:`provide` has installed in this process, by device type."""
