"""Find, load and check the plugins that distributions register."""
