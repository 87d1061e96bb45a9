"""Products of matrices: the choice of form, and a form for each kind of device."""
