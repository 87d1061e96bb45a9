"""Readers and writers of files. None of them executes code from a file."""
