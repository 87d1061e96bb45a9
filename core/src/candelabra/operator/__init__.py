"""Operators as records: schema, derivative grammar, and what is compiled from them."""
