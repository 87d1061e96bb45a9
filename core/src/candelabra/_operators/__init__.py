"""The records of all operators, by subject."""
