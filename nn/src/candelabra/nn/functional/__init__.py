"""``torch.nn.functional``'s names and signatures.

What ``torch`` offers at top level too (convolution, pooling, softmax …) is the core's; losses and
normalisation are here.
"""

from __future__ import annotations

from candelabra.fronts.softmax import log_softmax, softmax, softmin
from candelabra.nn.functional.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from candelabra.nn.functional.affine import bilinear, linear
from candelabra.nn.functional.classification import cross_entropy, nll_loss, one_hot
from candelabra.nn.functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from candelabra.nn.functional.dropping import dropout, dropout1d, dropout2d, dropout3d, masked_dropout
from candelabra.nn.functional.lookup import embedding
from candelabra.nn.functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from candelabra.nn.functional.normalizing import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from candelabra.nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from candelabra.nn.padding import pad

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cross_entropy", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "elu", "embedding", "gelu", "glu", "group_norm", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "masked_dropout", "max_pool1d", "max_pool2d", "max_pool3d", "mish", "mse_loss", "nll_loss", "one_hot",
    "pad",
    "prelu", "relu", "relu6", "rms_norm", "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip
