"""The grammar of operators: what an author writes down, read and checked."""
