"""Families of kernels: each makes the sources of one kind of loop nest, and launches them."""
