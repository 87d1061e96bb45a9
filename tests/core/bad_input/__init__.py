"""Tables of invalid calls by kind of error, each with the error's class and text. The test is in
``test_bad_input.py``."""
