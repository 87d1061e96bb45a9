"""Register a device in this process that is not an installed backend."""

from __future__ import annotations

from collections.abc import Callable

Setup = Callable[[], object]


def prepared(device: str, setup: Setup | None = None) -> str:
    """Return the name of the device under test, after calling ``setup`` and registering the fake device if necessary.

    ``fake`` (with options, ``fake?immutable``) is the accelerator of :mod:`candelabra_conformance.fake`, unless a
    plugin owns that name. Raises ``FakeDeviceError`` for unsupported options.
    """
    if setup is not None:
        setup()
    from candelabra_conformance.fake.installing import provide

    return provide(device)
