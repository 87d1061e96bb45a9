"""Tensors and automatic differentiation with a core that has no kernels: every device is a plugin."""

from candelabra._version import __version__ as __version__
