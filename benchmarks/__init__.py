"""Speed, side by side with a peer: ratios from one run, never absolute times alone."""
