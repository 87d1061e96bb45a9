"""Graphs of operators: what a trace records, passes rewrite, and devices compile."""
