"""Modules of neural networks, their functional forms, and initialization."""

from __future__ import annotations

from candelabra.nn import activation as _activation
from candelabra.nn import containers as _containers
from candelabra.nn import convolution as _convolution
from candelabra.nn import dropout as _dropout
from candelabra.nn import flatten as _flatten
from candelabra.nn import functional as functional
from candelabra.nn import init as init
from candelabra.nn import linear as _linear
from candelabra.nn import loss as _loss
from candelabra.nn import normalization as _normalization
from candelabra.nn import parameter as parameter
from candelabra.nn import pooling as _pooling
from candelabra.nn import sparse as _sparse
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

__all__ = [
    "Buffer", "Module", "Parameter", "functional", "init", "parameter", "utils",
    *_activation.__all__,
    *_containers.__all__,
    *_convolution.__all__,
    *_dropout.__all__,
    *_flatten.__all__,
    *_linear.__all__,
    *_loss.__all__,
    *_normalization.__all__,
    *_pooling.__all__,
    *_sparse.__all__,
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
