"""The operators that networks are made of, a module per family. A backend's kernels for them carry their names."""
