"""From a call to the function that serves it, once per operator and key."""
