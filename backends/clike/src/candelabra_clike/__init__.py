"""Kernels for devices whose language is like C, written once: expressions, loop nests, and a dialect per language.

A device brings an :class:`~candelabra_clike.engine.Engine` (memory and a compiler) and gets a kernel table.
"""

from __future__ import annotations

from candelabra_clike.array import StridedArray
from candelabra_clike.backend import CLikeBackend
from candelabra_clike.dialect import CUDA, OPENCL, Dialect
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.source import Source

__all__ = ["CLikeBackend", "CUDA", "Dialect", "Engine", "Launch", "OPENCL", "Source", "StridedArray", "Traits"]
