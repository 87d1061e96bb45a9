"""Templates of kernels: each module generates the sources of one kind of loop nest, and launches them."""
