"""The public names: where they are declared, and how they come to stand in ``candelabra``."""
