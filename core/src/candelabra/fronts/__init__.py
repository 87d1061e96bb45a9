"""PyTorch's overloaded names: thin functions, a few lines each, over the records.

``@front`` publishes a function under its name, as a method too unless ``method=False``. A front may shadow a record of
the same name: then it is what users see, and the record is what it calls.
"""

from candelabra import creation as values  # noqa: F401 - to declare is the point
from candelabra.fronts import arithmetic, arranging, comparison, conversion, creation, indexing, interchange, joining, network, random, random_inplace, reductions, scattering, shaping, sorting  # noqa: F401 - to declare is the point
