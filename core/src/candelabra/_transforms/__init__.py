"""Function transforms as virtual devices: levels, ``vmap``, and derivatives of functions."""
