"""``SummaryWriter`` for TensorBoard. It needs the package: ``pip install "candelabra[tensorboard]"``."""

from __future__ import annotations

from importlib import import_module

from candelabra.typing import Any


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("tensorboard")
    except ModuleNotFoundError as error:
        if error.name != "tensorboard":
            raise
        raise ModuleNotFoundError(
            'TensorBoard is not installed: pip install "candelabra[tensorboard]"', name="tensorboard"
        ) from None
    from candelabra.utils.tensorboard.writer import SummaryWriter

    return SummaryWriter


__all__ = ["SummaryWriter"]


def __dir__() -> list[str]:
    return sorted(__all__)
