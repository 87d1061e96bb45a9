"""Conversion between tensors and Python values, NumPy arrays, DLPack capsules and host memory."""
