"""Fused kernels: groups of nodes of a graph as one kernel.

:mod:`~candelabra_clike.fusion.lowering` turns a group into expressions of the kernel language,
:mod:`~candelabra_clike.fusion.compiling` launches their loop nest, and :func:`compiled` replaces the groups of a graph.
"""

from candelabra_clike.fusion.compiling import FusedKernel, compiled, fused, planned, worth
from candelabra_clike.fusion.lowering import is_fusible

__all__ = ["FusedKernel", "compiled", "fused", "is_fusible", "planned", "worth"]
