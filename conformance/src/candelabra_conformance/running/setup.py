"""Making a device known in this process: installed backends are; others are added by whoever ships them."""

from __future__ import annotations

from collections.abc import Callable

Setup = Callable[[], object]


def prepared(device: str, setup: Setup | None = None) -> str:
    """The name of the device that is to be tested, after ``setup`` and what this package itself provides.

    ``fake`` (with options, ``fake?immutable``) is the accelerator of :mod:`candelabra_conformance.fake`, unless a
    plugin owns that name. ``FakeDeviceError`` where its options cannot be had.
    """
    if setup is not None:
        setup()
    from candelabra_conformance.fake.installing import provide

    return provide(device)
