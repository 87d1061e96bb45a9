"""The languages of kernels: a module each."""

from candelabra_clike.dialects.c import C
from candelabra_clike.dialects.cuda import CUDA
from candelabra_clike.dialects.opencl import OPENCL

__all__ = ["C", "CUDA", "OPENCL"]
