"""Modules of neural networks, their functional forms, and initialization."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "functional",
    "grad", "init", "modules", "parallel", "parameter", "summary", "utils", *modules.__all__,
]  # fmt: skip


if TYPE_CHECKING:
    from candelabra.nn import parallel as parallel
    from candelabra.nn.parallel import DataParallel as DataParallel
else:

    def __getattr__(name: str) -> Any:  # imported at the first use
        if name not in ("parallel", "DataParallel"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        parallel = import_module(f"{__name__}.parallel")
        return parallel if name == "parallel" else parallel.DataParallel


def __dir__() -> list[str]:
    return sorted(__all__)
