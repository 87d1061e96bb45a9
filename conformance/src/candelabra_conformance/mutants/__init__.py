"""Deliberately broken backends, each of which the suite must catch."""
