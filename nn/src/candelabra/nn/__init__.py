"""Modules, their functional forms, and initialisation."""

from __future__ import annotations

from candelabra.nn import functional as functional
from candelabra.nn import init as init
from candelabra.nn import parameter as parameter
from candelabra.nn import utils as utils
from candelabra.nn.activation import *  # noqa: F403 - each module's __all__ is the list
from candelabra.nn.containers import *  # noqa: F403
from candelabra.nn.convolution import *  # noqa: F403
from candelabra.nn.dropout import *  # noqa: F403
from candelabra.nn.flatten import *  # noqa: F403
from candelabra.nn.linear import *  # noqa: F403
from candelabra.nn.loss import *  # noqa: F403
from candelabra.nn.module import Module as Module
from candelabra.nn.normalization import *  # noqa: F403
from candelabra.nn.parameter import Buffer as Buffer
from candelabra.nn.parameter import Parameter as Parameter
from candelabra.nn.pooling import *  # noqa: F403
from candelabra.nn.sparse import *  # noqa: F403
