"""Fast kernels for the device ``cpu``: the C of :mod:`candelabra_clike`, compiled ahead of time.

This distribution owns no device. It contributes kernels to the one of candelabra-cpu, whose payloads are NumPy arrays,
and leaves small calls to NumPy, see :mod:`candelabra_native.thresholds`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping

from candelabra.backend import Kernel, hookimpl


class Plugin:
    """The contribution."""

    @hookimpl
    def candelabra_kernels(self, device_type: str, kernels: Mapping[str, Kernel]) -> Mapping[str, Kernel]:
        if not available():
            return {}
        from candelabra_native.kernels import contributed

        return contributed(kernels)


def available() -> bool:
    """Return whether kernels can run here: whether there are any for this processor, and the extension module."""
    from candelabra_native.finding import may_compile
    from candelabra_native.pack.libraries import built
    from candelabra_native.processor import levels

    if importlib.util.find_spec("candelabra_native.launch") is None or not levels():
        return False
    try:
        importlib.import_module("candelabra_native.launch._launch")
    except ImportError:  # a checkout without a compiler
        return False
    return bool(set(built()) & set(levels())) or may_compile()


plugin = Plugin()

__all__ = ["plugin"]
