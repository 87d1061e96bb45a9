"""The modules, in files by subject with the names of ``torch.nn.modules``. All are public in :mod:`candelabra.nn`."""

from __future__ import annotations

from candelabra.nn.modules import activation as _activation
from candelabra.nn.modules import adaptive as _adaptive
from candelabra.nn.modules import batchnorm as _batchnorm
from candelabra.nn.modules import channelshuffle as _channelshuffle
from candelabra.nn.modules import container as _container
from candelabra.nn.modules import conv as _conv
from candelabra.nn.modules import distance as _distance
from candelabra.nn.modules import dropout as _dropout
from candelabra.nn.modules import flatten as _flatten
from candelabra.nn.modules import fold as _fold
from candelabra.nn.modules import instancenorm as _instancenorm
from candelabra.nn.modules import linear as _linear
from candelabra.nn.modules import linear_cross_entropy as _linear_cross_entropy
from candelabra.nn.modules import linear_cross_entropy_options as _linear_cross_entropy_options
from candelabra.nn.modules import loss as _loss
from candelabra.nn.modules import normalization as _normalization
from candelabra.nn.modules import padding as _padding
from candelabra.nn.modules import pixelshuffle as _pixelshuffle
from candelabra.nn.modules import pooling as _pooling
from candelabra.nn.modules import rnn as _rnn
from candelabra.nn.modules import sparse as _sparse
from candelabra.nn.modules import transformer as _transformer
from candelabra.nn.modules import upsampling as _upsampling
from candelabra.nn.modules.activation import *  # noqa: F403 - each file's __all__ is the list
from candelabra.nn.modules.adaptive import *  # noqa: F403
from candelabra.nn.modules.batchnorm import *  # noqa: F403
from candelabra.nn.modules.channelshuffle import *  # noqa: F403
from candelabra.nn.modules.container import *  # noqa: F403
from candelabra.nn.modules.conv import *  # noqa: F403
from candelabra.nn.modules.distance import *  # noqa: F403
from candelabra.nn.modules.dropout import *  # noqa: F403
from candelabra.nn.modules.flatten import *  # noqa: F403
from candelabra.nn.modules.fold import *  # noqa: F403
from candelabra.nn.modules.instancenorm import *  # noqa: F403
from candelabra.nn.modules.linear import *  # noqa: F403
from candelabra.nn.modules.linear_cross_entropy import *  # noqa: F403
from candelabra.nn.modules.linear_cross_entropy_options import *  # noqa: F403
from candelabra.nn.modules.loss import *  # noqa: F403
from candelabra.nn.modules.module import Module as Module
from candelabra.nn.modules.normalization import *  # noqa: F403
from candelabra.nn.modules.padding import *  # noqa: F403
from candelabra.nn.modules.pixelshuffle import *  # noqa: F403
from candelabra.nn.modules.pooling import *  # noqa: F403
from candelabra.nn.modules.rnn import *  # noqa: F403
from candelabra.nn.modules.sparse import *  # noqa: F403
from candelabra.nn.modules.transformer import *  # noqa: F403
from candelabra.nn.modules.upsampling import *  # noqa: F403

__all__ = [
    *_activation.__all__,
    *_adaptive.__all__,
    *_batchnorm.__all__,
    *_channelshuffle.__all__,
    *_container.__all__,
    *_conv.__all__,
    *_distance.__all__,
    *_dropout.__all__,
    *_flatten.__all__,
    *_fold.__all__,
    *_instancenorm.__all__,
    *_linear.__all__,
    *_linear_cross_entropy.__all__,
    *_linear_cross_entropy_options.__all__,
    *_loss.__all__,
    "Module",
    *_normalization.__all__,
    *_padding.__all__,
    *_pixelshuffle.__all__,
    *_pooling.__all__,
    *_rnn.__all__,
    *_sparse.__all__,
    *_transformer.__all__,
    *_upsampling.__all__,
]


def __dir__() -> list[str]:
    return sorted(__all__)
