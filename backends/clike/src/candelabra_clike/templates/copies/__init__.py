"""Copies that put elements in another order."""
