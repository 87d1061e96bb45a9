"""Generators, and how draws consume their counters."""
