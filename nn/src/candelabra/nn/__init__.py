"""Modules of neural networks, their functional forms, and initialization."""

from __future__ import annotations

from candelabra.nn import attention as attention
from candelabra.nn import functional as functional
from candelabra.nn import grad as grad
from candelabra.nn import init as init
from candelabra.nn import modules as modules
from candelabra.nn import parameter as parameter
from candelabra.nn import utils as utils
from candelabra.nn.modules import *  # noqa: F403 - its __all__ is the list
from candelabra.nn.modules.module import Module as Module
from candelabra.nn.parameter import Buffer as Buffer
from candelabra.nn.parameter import Parameter as Parameter
from candelabra.nn.parameter import UninitializedBuffer as UninitializedBuffer
from candelabra.nn.parameter import UninitializedParameter as UninitializedParameter
from candelabra.nn.summary import summary as summary

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "functional", "grad", "init",
    "modules", "parameter", "summary", "utils", *modules.__all__,
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
