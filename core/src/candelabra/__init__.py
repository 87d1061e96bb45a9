"""Tensors and automatic differentiation with a core that has no kernels: every device is a plugin."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import device as device
from candelabra._namespace import companions as _companions
from candelabra._namespace import device_imports as _device_imports
from candelabra._namespace import exports as _exports
from candelabra._namespace import moved as _moved
from candelabra._namespace import publishing as _publishing
from candelabra._namespace.index import CONTRIBUTORS as _CONTRIBUTORS
from candelabra._namespace.index import declare_contributed as _declare_contributed
from candelabra._namespace.index import read as _read_index
from candelabra._records import lookup as _lookup
from candelabra._tensor import Tensor as Tensor
from candelabra._version import __version__ as __version__

if TYPE_CHECKING:  # the names that __getattr__ finds, from the generated stubs
    from candelabra._functions import *  # noqa: F403
    from candelabra._functions_nn import *  # noqa: F403

_companions.extend_path(__path__)
if not _read_index(__path__):
    raise ImportError("the index of public names, candelabra/_index, is missing: in a checkout run `make index`")


def _declare_operators_of_plugins() -> None:
    from candelabra._plugins.operators import declare_all

    declare_all()


_CONTRIBUTORS.append(_declare_operators_of_plugins)
_publishing.install_methods()
_moved.install()
_device_imports.install()


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _companions.COMPANIONS:
        package = _companions.companion(name, __path__)
        if _read_index(__path__):
            _publishing.install_indexed()
        return package
    found = _exports.exported(name) if name in _exports.EXPORTS else _lookup.public_function(name)
    if found is None and name.startswith("_foreach_"):
        from candelabra._namespace.foreach import foreach

        found = foreach(name)
    if found is None and "_autocast_" in name:
        from candelabra.amp.autocast_mode import of_device_type

        found = of_device_type(name)
    if found is None and name not in _exports.EXPORTS and name[0] != "_":
        from candelabra._device_modules import device_module

        found = device_module(name)
        if found is None:
            _declare_contributed()
            found = _lookup.public_function(name)
    if found is None and name not in _exports.EXPORTS:
        raise AttributeError(f"module 'candelabra' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    top = (name for name in _lookup.public_names() if "." not in name and name[0] != "_")
    exported = (name for name in _exports.EXPORTS if name[0] != "_" or name.startswith("__"))
    return sorted({*exported, *_companions.COMPANIONS, *top, *_lookup.inplace_names()})
