"""Sorting, and values that depend on the order of elements: order statistics and quantiles."""
