"""PyTorch's modules of settings, ``_dynamo.config`` and ``_inductor.config``, over those of ``compiler.config``."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from candelabra._annotations import Any
from candelabra._compile.config import _Patch, config
from candelabra._compile.pytorch_options import without_effect


class PyTorchSettings:
    """Settings whose values live elsewhere: ``forwarded`` names those of ``compiler.config``; others have no effect.

    A name with a dot in ``ineffective``, such as ``trace.enabled``, is an attribute of an attribute.
    """

    def __init__(
        self, title: str, ineffective: Mapping[str, Any], forwarded: Mapping[str, str], prefix: str = ""
    ) -> None:
        vars(self).update(_title=title, _values=dict(ineffective), _forwarded=dict(forwarded), _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        if name in self._forwarded:
            return self._read(name)
        path = f"{self._prefix}{name}"
        if path in self._values:
            return self._values[path]
        if any(key.startswith(f"{path}.") for key in self._values):
            part = PyTorchSettings(f"{self._title}.{name}", {}, {}, f"{path}.")
            vars(part)["_values"] = self._values
            return part
        raise AttributeError(f"{self._title} has no setting {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._forwarded:
            self._write(name, value)
            return
        before = getattr(self, name)
        path = f"{self._prefix}{name}"
        self._values[path] = value
        if value != before:
            without_effect(path)

    def _read(self, name: str) -> Any:
        return getattr(config, self._forwarded[name])

    def _write(self, name: str, value: Any) -> None:
        setattr(config, self._forwarded[name], value)

    def __dir__(self) -> list[str]:
        return sorted([*self._forwarded, *(key.partition(".")[0] for key in self._values), "patch"])

    def patch(self, changes: Mapping[str, Any] | str | None = None, value: Any = None, **more: Any) -> Any:
        """Return a context manager, also a decorator, with other values of some settings."""
        changes = {changes: value} if isinstance(changes, str) else dict(changes or {})
        return _Patch(self, {**changes, **more})


class SettingsModule(ModuleType):
    """A module whose attributes are settings. ``settings`` is set when its class is changed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["settings"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or name == "settings":
            super().__setattr__(name, value)
        else:
            setattr(vars(self)["settings"], name, value)

    def __dir__(self) -> list[str]:
        return dir(vars(self)["settings"])


__all__ = ["PyTorchSettings", "SettingsModule"]
