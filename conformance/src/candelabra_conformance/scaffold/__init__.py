"""A new backend's package, written for a vendor to begin with: ``candelabra new-backend acme``."""

from candelabra_conformance.scaffold.write import InvalidName, write_backend

__all__ = ["InvalidName", "write_backend"]
