"""``candelabra.compile``: guards, compiled programs, and their derivatives."""
