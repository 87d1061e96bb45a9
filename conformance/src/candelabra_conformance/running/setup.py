"""Making a device known in this process: installed backends are; others are added by whoever ships them."""

from __future__ import annotations

from collections.abc import Callable

from candelabra.plugins import registry

Setup = Callable[[], object]


def prepared(device: str, setup: Setup | None = None) -> str:
    """The name of the device that is to be tested, after ``setup`` and what this package itself provides.

    ``fake`` (with options, ``fake?immutable``) is the accelerator of :mod:`candelabra_conformance.fake`, unless a
    plugin owns that name.
    """
    if setup is not None:
        setup()
    from candelabra_conformance.fake.installing import NAME, provide

    name = device.partition("?")[0]
    kind = name.partition(":")[0]
    return provide(device) if kind == NAME and kind not in registry.plugins() else name
