"""Window functions."""
