"""``torch.nn.functional``'s names and signatures.

What ``torch`` offers at top level too (convolution, pooling …) is the core's; losses and normalisation are here.
"""

from __future__ import annotations

from candelabra.nn._functional.activations import (
    celu,
    celu_,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    rrelu,
    rrelu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from candelabra.nn._functional.affine import bilinear, linear
from candelabra.nn._functional.attention import scaled_dot_product_attention
from candelabra.nn._functional.classification import cross_entropy, nll_loss, one_hot
from candelabra.nn._functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from candelabra.nn._functional.dropping import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    masked_dropout,
)
from candelabra.nn._functional.likelihoods import (
    gaussian_nll_loss,
    poisson_nll_loss,
)
from candelabra.nn._functional.lookup import embedding
from candelabra.nn._functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from candelabra.nn._functional.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from candelabra.nn._functional.normalizing import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from candelabra.nn._functional.pooling import (
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
from candelabra.nn._functional.shuffling import (
    channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from candelabra.nn._functional.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from candelabra.nn._functional.vectors import (
    normalize,
)
from candelabra.nn._functional.windows import (
    fold,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    unfold,
)
from candelabra.nn.padding import pad

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "alpha_dropout", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cross_entropy", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding",
    "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "group_norm", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "masked_dropout", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "mish", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "normalize", "one_hot", "pad", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
