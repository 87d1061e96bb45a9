"""Functions that create tensors from numbers, Python data, arrays and memory."""
