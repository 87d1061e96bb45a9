"""Tensors made from numbers, Python data, arrays and memory."""
