"""The command ``candelabra``."""
