"""One expression for every element."""
