"""PyTorch's overloaded names: thin functions, a few lines each, over the records.

``@front`` publishes a function under its name, as a method too unless ``method=False``. A front may shadow a record of
the same name: then it is what users see, and the record is what it calls.
"""
