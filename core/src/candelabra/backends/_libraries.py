"""The libraries that PyTorch is built with, as modules with their switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from candelabra._annotations import Any, Final
from candelabra._switches import get_float32_matmul_precision, set_float32_matmul_precision

LIBRARIES: Final[dict[str, dict[str, Any]]] = {
    "cudnn": {
        "enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "fp32_precision": "none",
    },
    "mkl": {},
    "mkldnn": {"enabled": True, "deterministic": False, "fp32_precision": "none"},
    "openmp": {},
    "opt_einsum": {"enabled": False, "strategy": None},
    "nnpack": {"enabled": True},
    "xnnpack": {"enabled": False},
    "quantized": {"engine": "none", "supported_engines": ()},
    "miopen": {"immediate": False},
    "mha": {"fastpath": True},
}  # fmt: skip
"""The libraries with their switches, which have PyTorch's names and defaults."""


class Switchboard(ModuleType):
    """A module whose attributes are switches. As in any module, a program may set further attributes."""

    def __init__(self, name: str, doc: str, switches: dict[str, Any]) -> None:
        super().__init__(name, doc)
        self.__dict__["_switches"] = dict(switches)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_switches"][name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or isinstance(getattr(type(self), name, None), property):
            super().__setattr__(name, value)
        else:
            self._switches[name] = value

    def __dir__(self) -> list[str]:
        own = (name for kind in type(self).__mro__[:-2] for name in vars(kind) if name[0] != "_")
        return sorted({*own, *self._switches})

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may be computed in less precision."""
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")


class Library(Switchboard):
    """A library that is no part of candelabra."""

    def is_available(self) -> bool:
        """Return False."""
        return False

    def version(self) -> None:
        """Return None: there is no library."""
        return

    def is_acceptable(self, tensor: Any) -> bool:
        """Return False: the library computes nothing."""
        return False

    def get_fastpath_enabled(self) -> bool:
        """Return the switch of the fast path."""
        return bool(self.fastpath)

    def set_fastpath_enabled(self, value: bool) -> None:
        """Set the switch of the fast path."""
        self.fastpath = value

    def get_opt_einsum(self) -> None:
        """Return None: ``einsum`` chooses its order itself."""
        return

    def set_flags(self, *values: Any, **named: Any) -> tuple[Any, ...]:
        """Set switches, by position in PyTorch's order or by name, and return their earlier values."""
        names = [*self._switches, "allow_tf32"]
        chosen = dict(zip(names, values, strict=False)) | named
        before = tuple(getattr(self, name) for name in chosen)
        for name, value in chosen.items():
            if value is not None:
                setattr(self, name, value)
        return before

    @contextmanager
    def flags(self, **named: Any) -> Iterator[None]:
        """Return a context manager that sets switches by name and restores them."""
        before = {name: getattr(self, name) for name in named}
        self.set_flags(**named)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)


class verbose:
    """A context manager without effect, for the log of a library."""

    def __init__(self, enable: int = 0) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def library(name: str) -> Library:
    """Return the module of a library."""
    made = Library(f"candelabra.backends.{name}", f"{name}: not used by candelabra.", LIBRARIES[name])
    made.__dict__["verbose"] = verbose
    return made
