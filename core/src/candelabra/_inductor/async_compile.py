"""PyTorch's compiler of generated C++ and Triton, which does not exist here: its results raise when they are called."""

from __future__ import annotations

from candelabra._absent import missing
from candelabra._annotations import Any

_REASON = (
    "code that PyTorch's compiler has generated needs its headers; register_kernel adds a kernel to a device, see "
    "docs/adding-an-operator.md, and compiler.set_logs(output_code=True) shows what candelabra generates"
)


class AsyncCompile:
    """Takes the source of a kernel. As in PyTorch, an error is raised by the call of the kernel, not here."""

    def cpp(self, source_code: str) -> Any:
        """Return a function that raises ``NotImplementedError``."""
        return missing("_inductor.async_compile", "AsyncCompile.cpp", _REASON)

    def cpp_pybinding(self, argtypes: list[str], source_code: str) -> Any:
        """Return a function that raises ``NotImplementedError``."""
        return missing("_inductor.async_compile", "AsyncCompile.cpp_pybinding", _REASON)

    def triton(self, kernel_name: str, source_code: str, device_str: str = "") -> Any:
        """Return a function that raises ``NotImplementedError``."""
        return missing("_inductor.async_compile", "AsyncCompile.triton", _REASON)


__all__ = ["AsyncCompile"]
