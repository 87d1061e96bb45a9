"""Operators on shapes: views and their copies, joining, splitting, repeating, and in-place changes of the shape."""
