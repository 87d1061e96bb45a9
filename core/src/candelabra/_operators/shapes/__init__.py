"""Operators on shapes: views and their copies, joining, splitting, repeating, and shapes changed in place."""
