"""Modules of neural networks, their functional forms, and initialization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra.library import deferred_imports
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
    "factory_kwargs", "grad", "init", "modules", "parallel", "parameter", "summary", "utils", *modules.__all__,
]  # fmt: skip


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the options of a module's factory functions: device, dtype and memory format from ``kwargs``.

    ``kwargs["factory_kwargs"]`` holds those whose names the module uses otherwise. Raises ``TypeError`` for others,
    and for an option in both places.
    """
    options = dict(kwargs or {})
    found = dict(options.pop("factory_kwargs", {}))
    if unknown := options.keys() - {"device", "dtype", "memory_format"}:
        raise TypeError(f"unexpected kwargs {unknown}")
    for name in options.keys() & found.keys():
        raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
    return found | options


if TYPE_CHECKING:  # imported at the first use
    from candelabra.nn import _reduction as _reduction
    from candelabra.nn import parallel as parallel
    from candelabra.nn.parallel import DataParallel as DataParallel
else:
    __getattr__ = deferred_imports(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
