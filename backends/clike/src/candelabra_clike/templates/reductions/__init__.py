"""Elements joined to one: sums and their like, places of extremes, running totals."""
