"""Programs over rows: several reductions and a value for every element in one kernel."""
