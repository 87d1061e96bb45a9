"""Operators that find elements."""
