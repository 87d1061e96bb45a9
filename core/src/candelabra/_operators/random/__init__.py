"""Random numbers: draws, new tensors, distributions, and in-place fills."""
