"""The operators' records, by subject."""
