"""The mutants, a module per family of faults."""
