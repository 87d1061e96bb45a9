"""The CPU device of candelabra, implemented with NumPy and SciPy."""

from __future__ import annotations

from candelabra.backend import hookimpl


class _CpuPlugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_cpu.backend import CpuBackend

        return CpuBackend()


plugin = _CpuPlugin()
