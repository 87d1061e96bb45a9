"""Files: `save` and `load`, which execute no pickle."""

from candelabra._serialization.api import load as load
from candelabra._serialization.api import save as save
from candelabra._serialization.errors import FileFormatError as FileFormatError
