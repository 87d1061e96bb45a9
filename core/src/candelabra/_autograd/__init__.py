"""Reverse mode: nodes, the engine, views and in-place writes, modes and hooks."""
