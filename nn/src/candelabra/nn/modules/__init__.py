"""The modules, in files by subject with the names of ``torch.nn.modules``. All are public in :mod:`candelabra.nn`."""

from __future__ import annotations

from candelabra.nn.modules import activation as _activation
from candelabra.nn.modules import batchnorm as _batchnorm
from candelabra.nn.modules import container as _container
from candelabra.nn.modules import conv as _conv
from candelabra.nn.modules import dropout as _dropout
from candelabra.nn.modules import flatten as _flatten
from candelabra.nn.modules import linear as _linear
from candelabra.nn.modules import loss as _loss
from candelabra.nn.modules import module as _module
from candelabra.nn.modules import normalization as _normalization
from candelabra.nn.modules import pooling as _pooling
from candelabra.nn.modules import sparse as _sparse
from candelabra.nn.modules import upsampling as _upsampling
from candelabra.nn.modules.activation import *  # noqa: F403 - each file's __all__ is the list
from candelabra.nn.modules.batchnorm import *  # noqa: F403
from candelabra.nn.modules.container import *  # noqa: F403
from candelabra.nn.modules.conv import *  # noqa: F403
from candelabra.nn.modules.dropout import *  # noqa: F403
from candelabra.nn.modules.flatten import *  # noqa: F403
from candelabra.nn.modules.linear import *  # noqa: F403
from candelabra.nn.modules.loss import *  # noqa: F403
from candelabra.nn.modules.module import *  # noqa: F403
from candelabra.nn.modules.normalization import *  # noqa: F403
from candelabra.nn.modules.pooling import *  # noqa: F403
from candelabra.nn.modules.sparse import *  # noqa: F403
from candelabra.nn.modules.upsampling import *  # noqa: F403

__all__ = [
    *_activation.__all__,
    *_batchnorm.__all__,
    *_container.__all__,
    *_conv.__all__,
    *_dropout.__all__,
    *_flatten.__all__,
    *_linear.__all__,
    *_loss.__all__,
    *_module.__all__,
    *_normalization.__all__,
    *_pooling.__all__,
    *_sparse.__all__,
    *_upsampling.__all__,
]


def __dir__() -> list[str]:
    return sorted(__all__)
