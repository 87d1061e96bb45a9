"""Fused kernels: groups of nodes of a graph as one kernel.

:mod:`~candelabra_clike.fusion.lowering` turns a group into expressions of the kernel language,
:mod:`~candelabra_clike.fusion.kernels` launches their loop nest, and :func:`compiled` replaces the groups of a graph.
"""

from candelabra_clike.fusion.compiling import compiled, fused, planned, worth
from candelabra_clike.fusion.kernels import FusedKernel, fused_kernel
from candelabra_clike.fusion.lowering import is_fusible

__all__ = ["FusedKernel", "compiled", "fused", "fused_kernel", "is_fusible", "planned", "worth"]
