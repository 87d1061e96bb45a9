"""Files: `save` and `load`, which execute no pickle."""

from candelabra.serialization.api import load as load
from candelabra.serialization.api import save as save
from candelabra.serialization.errors import FileFormatError as FileFormatError
