"""The CPU device of candelabra, on NumPy and SciPy."""

from __future__ import annotations

from candelabra.backend import hookimpl


class _Plugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_cpu.backend import CpuBackend

        return CpuBackend()


plugin = _Plugin()
