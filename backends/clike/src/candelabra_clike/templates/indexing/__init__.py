"""Elements at places that other arrays name, and orders of elements."""
