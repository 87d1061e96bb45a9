"""Generators, and the counters that draws consume."""
