"""PyTorch's overloaded names: thin functions, a few lines each, over the records.

``@front`` publishes a function under its name, as a method too unless ``method=False``. A front may shadow a record of
the same name: then it is what users see, and the record is what it calls.
"""

from candelabra import creation as values  # noqa: F401 - to declare is the point

# To declare is the point.
from candelabra.fronts import activations as activations
from candelabra.fronts import arithmetic as arithmetic
from candelabra.fronts import arranging as arranging
from candelabra.fronts import comparison as comparison
from candelabra.fronts import conversion as conversion
from candelabra.fronts import convolution as convolution
from candelabra.fronts import creation as creation
from candelabra.fronts import indexing as indexing
from candelabra.fronts import interchange as interchange
from candelabra.fronts import joining as joining
from candelabra.fronts import pooling as pooling
from candelabra.fronts import random as random
from candelabra.fronts import random_inplace as random_inplace
from candelabra.fronts import reductions as reductions
from candelabra.fronts import scattering as scattering
from candelabra.fronts import shaping as shaping
from candelabra.fronts import sorting as sorting
