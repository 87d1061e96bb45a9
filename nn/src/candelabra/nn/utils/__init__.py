"""Functions over all gradients or all parameters of a network, and sequences of different lengths (``rnn``)."""

from __future__ import annotations

from candelabra.nn.utils import rnn as rnn
from candelabra.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from candelabra.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from candelabra.nn.utils.clipping import get_total_norm as get_total_norm
from candelabra.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from candelabra.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from candelabra.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from candelabra.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from candelabra.nn.utils.init import skip_init as skip_init
from candelabra.nn.utils.memory_format import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
from candelabra.nn.utils.memory_format import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
from candelabra.nn.utils.vector import parameters_to_vector as parameters_to_vector
from candelabra.nn.utils.vector import vector_to_parameters as vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "rnn", "skip_init", "vector_to_parameters",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
