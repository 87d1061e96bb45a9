"""The operators of neural networks, by subject. Backends register kernels under the names of the records."""
