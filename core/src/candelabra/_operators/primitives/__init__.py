"""Operators that the engine and other operators are made of."""
