"""What ``candelabra.compile(module)`` returns: a module around another one."""

from __future__ import annotations

from typing import Any

from candelabra.nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module whose calls run the compiled form of another one, ``_orig_mod``.

    Parameters, buffers and attributes are those of the other module; in ``state_dict()`` their names begin with
    ``_orig_mod.``, as in PyTorch.
    """

    def __init__(self, module: Module, function: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled_call"] = function
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]  # type: ignore[index]  # containers have items

    def __len__(self) -> int:
        return len(self._orig_mod)


def __dir__() -> list[str]:
    return sorted(__all__)
