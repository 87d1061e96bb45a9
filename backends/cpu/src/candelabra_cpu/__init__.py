"""The CPU device of candelabra, on NumPy and SciPy."""
