"""The wider operators that stand at the top of ``candelabra``, declared family by family, a module each."""
