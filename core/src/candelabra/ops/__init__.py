"""The operators, declared family by family. A module is imported when one of its names is asked for: see the index."""
