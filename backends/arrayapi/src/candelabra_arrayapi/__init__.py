"""Kernels written once over any namespace of the Python Array API standard."""
