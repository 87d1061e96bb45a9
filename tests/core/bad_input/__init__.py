"""Bad calls, by what is wrong with them: each with its error class and text. The test is in ``test_bad_input.py``."""
