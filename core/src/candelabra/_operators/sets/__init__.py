"""Tensors as sets: distinct elements, membership, combinations."""
