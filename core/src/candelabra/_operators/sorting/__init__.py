"""Sorting, and what is read off sorted values: order statistics and quantiles."""
