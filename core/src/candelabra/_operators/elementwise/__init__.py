"""Operators that compute each element from the elements at the same index."""
