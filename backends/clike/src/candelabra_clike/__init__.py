"""Kernels in C for devices with a C-like language: expressions, loop nests, and one dialect per language.

A device implements an :class:`~candelabra_clike.engine.Engine`, that is memory and a compiler, and gets a kernel table.
"""

from __future__ import annotations

from candelabra_clike.array import StridedArray
from candelabra_clike.backend import CLikeBackend
from candelabra_clike.dialect import Dialect
from candelabra_clike.dialects import CUDA, OPENCL, C
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.source import Source

__all__ = ["C", "CLikeBackend", "CUDA", "Dialect", "Engine", "Launch", "OPENCL", "Source", "StridedArray", "Traits"]
