"""Tensors to and from what is not a tensor: bytes, nested sequences, NumPy arrays, DLPack, pickles, deep copies."""
