"""Readers and writers of files. None of them executes what a file says."""
