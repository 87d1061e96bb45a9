"""Operators that treat tensors as sets: distinct elements, membership, combinations."""
