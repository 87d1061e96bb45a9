"""PyTorch's name of compiled backward passes: ``candelabra.compiler.compiled_autograd``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from candelabra._annotations import Any
from candelabra._compile.compiled_autograd import compiled_autograd
from candelabra._compile.compiled_autograd import disabled as disable


def enable(compiler_fn: Callable[..., Any], dynamic: bool = True, **_: Any) -> AbstractContextManager[None]:
    """Compile the backward passes inside the block by ``compiler_fn``. Each shape is compiled for itself."""
    return compiled_autograd(compiler_fn)


_enable = enable
_disable = disable

__all__ = ["disable", "enable"]


def __dir__() -> list[str]:
    return sorted(__all__)
