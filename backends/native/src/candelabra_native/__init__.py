"""Fast kernels for the device ``cpu``: the C of :mod:`candelabra_clike`, compiled ahead of time.

This distribution owns no device. It contributes kernels to the one of candelabra-cpu, whose payloads are NumPy arrays,
and leaves small calls to NumPy, see :mod:`candelabra_native.thresholds`.
"""

from __future__ import annotations

from collections.abc import Mapping

from candelabra.backend import Kernel, hookimpl


class Plugin:
    """The contribution."""

    @hookimpl
    def candelabra_kernels(
        self, device_type: str, kernels: Mapping[str, Kernel], every_size: bool
    ) -> Mapping[str, Kernel]:
        from candelabra_native.kernels import contributed

        return contributed(kernels, every_size)


plugin = Plugin()

__all__ = ["plugin"]
