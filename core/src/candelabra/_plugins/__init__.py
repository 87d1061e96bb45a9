"""Plugins: finding, loading and checking what distributions register."""
