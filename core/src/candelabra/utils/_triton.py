"""Whether kernels in Triton can run: PyTorch's programs ask, and skip their parts in Triton."""

from __future__ import annotations


def has_triton() -> bool:
    """Return False: kernels are written in C or Python, see docs/adding-an-operator.md."""
    return False


def has_triton_package() -> bool:
    """Return False: candelabra uses no kernels in Triton."""
    return False


__all__ = ["has_triton", "has_triton_package"]
