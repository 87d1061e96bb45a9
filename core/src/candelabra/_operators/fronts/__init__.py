"""Overloaded names."""
