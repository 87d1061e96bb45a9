"""Tables of invalid calls by kind of error, each with the error's class and text. ``test_bad_input.py`` runs them."""
