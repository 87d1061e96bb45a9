"""``torch.nn.functional``'s names: the core's functions of networks, and padding."""

from __future__ import annotations

from candelabra.fronts.network import *  # noqa: F403 - the list of names is the core's
from candelabra.fronts.network import __all__ as _network
from candelabra.nn.padding import pad

__all__ = [*_network, "pad"]
