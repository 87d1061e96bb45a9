"""Reductions and normalisations under a mask."""
