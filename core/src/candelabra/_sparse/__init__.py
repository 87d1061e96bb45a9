"""Sparse tensors in coordinate format: indices and values, which are dense tensors.

``tensor`` has the class, ``construction`` makes and coalesces sparse tensors, ``operators`` has the operators that they
support, and ``optimization`` what optimizers do with sparse gradients. The public names are in ``candelabra.sparse``.
A call with a sparse tensor has a layout bit in its dispatch key, so calls with dense tensors cost nothing.
"""
