"""Convolutions, pooling, and what becomes of their gradients."""
