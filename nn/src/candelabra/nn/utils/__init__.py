"""Functions over all gradients or all parameters of a network, and sequences of different lengths (``rnn``)."""

from __future__ import annotations

from candelabra.nn.utils import rnn as rnn
from candelabra.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from candelabra.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from candelabra.nn.utils.clipping import get_total_norm as get_total_norm
from candelabra.nn.utils.vector import parameters_to_vector as parameters_to_vector
from candelabra.nn.utils.vector import vector_to_parameters as vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
