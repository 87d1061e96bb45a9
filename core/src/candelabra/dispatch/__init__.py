"""From an operator and a key to the function that serves them."""
