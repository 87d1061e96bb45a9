"""Reductions and normalisations of the elements that a mask selects."""
