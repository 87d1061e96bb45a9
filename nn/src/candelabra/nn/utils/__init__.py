"""Functions over all gradients or all parameters of a network, parametrizations of weights, pruning, and sequences.

The modules that few programs use are imported at the first use of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra.library import deferred_imports
from candelabra.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from candelabra.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from candelabra.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from candelabra.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from candelabra.nn.utils.clip_grad import get_total_norm as get_total_norm
from candelabra.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from candelabra.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters

# Not at their first use: these modules have the names of their functions.
from candelabra.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from candelabra.nn.utils.spectral_norm import spectral_norm as spectral_norm
from candelabra.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from candelabra.nn.utils.weight_norm import weight_norm as weight_norm

if TYPE_CHECKING:
    from candelabra.nn.utils import parametrizations as parametrizations
    from candelabra.nn.utils import parametrize as parametrize
    from candelabra.nn.utils import prune as prune
    from candelabra.nn.utils import rnn as rnn
    from candelabra.nn.utils import stateless as stateless
    from candelabra.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from candelabra.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from candelabra.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from candelabra.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from candelabra.nn.utils.init import skip_init as skip_init
    from candelabra.nn.utils.memory_format import (
        convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
    )
    from candelabra.nn.utils.memory_format import (
        convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
    )
else:
    __getattr__ = deferred_imports(__name__)

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn",
    "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
