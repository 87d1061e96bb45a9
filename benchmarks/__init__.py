"""Measurements of speed compared with a peer: ratios from one run, never absolute times alone."""
