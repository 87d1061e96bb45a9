"""Automatic differentiation: a define-by-run graph of nodes and an iterative engine."""
