"""The public names: the modules that declare them, and their publication in ``candelabra``."""
