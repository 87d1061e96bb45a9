"""The functions of ``candelabra.nn.functional``, by subject."""
