"""Random numbers: draws, new tensors of random numbers, distributions, fillers in place."""
