"""The base class of modules that PyTorch programs write for TorchScript. Public as ``candelabra.jit.ScriptModule``."""

from __future__ import annotations

from candelabra.nn.modules.module import Module

__all__ = ["ScriptModule"]


class ScriptModule(Module):
    """A module that PyTorch would compile: here it runs as Python code, as every module.

    An object of another class is no ScriptModule, so that ``isinstance`` answers as for a module that is not compiled.
    """


def __dir__() -> list[str]:
    return sorted(__all__)
