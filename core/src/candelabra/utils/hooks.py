"""The handle that removes a hook, by the path that programs import it from."""

from candelabra._autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]


def __dir__() -> list[str]:
    return sorted(__all__)
