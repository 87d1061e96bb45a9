"""Tensors from and to what is not a tensor: Python values, NumPy, DLPack, host memory."""
