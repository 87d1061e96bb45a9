"""Check a backend at registration. Errors quote the backend and the contract."""

from __future__ import annotations

from candelabra._annotations import Any, Final
from candelabra._plugins.describing import shown
from candelabra._records.registry import OPERATORS, outline
from candelabra.backend import API_VERSION, Backend, Capabilities, Kernel, operator_of
from candelabra.dtypes import BY_NAME, dtype
from candelabra.errors import BackendError

VARIADIC: Final = 0x04
"""The flag of a code object whose function has ``*args``: ``inspect.CO_VARARGS``, without importing inspect."""


def check_backend(name: str, backend: Any) -> None:
    """Check the name, contract, version window and capabilities of a backend."""
    if not isinstance(backend, Backend):
        raise BackendError(
            f"plugin {name!r}: candelabra_backend() returned {backend!r}, not a candelabra.backend.Backend"
        )
    own = getattr(backend, "name", None)
    if own != name:
        raise BackendError(f"plugin {name!r}: its backend has the name {own!r}; the two names must be equal")
    if not name.isidentifier():
        raise BackendError(f"plugin {name!r}: a device type must be an identifier, as in device('name:0')")
    _check_window(name, backend.api)
    capabilities: Any = getattr(backend, "capabilities", None)
    check_capabilities(name, capabilities)
    for method in ("layout", "restride") if capabilities.strided else ():
        if getattr(type(backend), method) is getattr(Backend, method):
            raise BackendError(f"backend {name!r} claims strided=True but has no {method}()")


def check_capabilities(name: str, capabilities: Any) -> None:
    """Check the class and the dtypes of capabilities: each a dtype, and those of the arithmetic stored as well."""
    if not isinstance(capabilities, Capabilities):
        raise BackendError(
            f"backend {name!r}: its capabilities are {shown(capabilities)}, not candelabra.backend.Capabilities"
        )
    for field in ("storage", "arithmetic"):
        for d in getattr(capabilities, field):
            if not isinstance(d, dtype):
                advice = f": write candelabra.{d}" if d in BY_NAME else ""
                raise BackendError(f"backend {name!r}: capabilities.{field} contains {d!r}, which is no dtype{advice}")
    unstored = sorted(d.name for d in capabilities.arithmetic - capabilities.storage)
    if unstored:
        raise BackendError(
            f"backend {name!r}: capabilities.arithmetic contains {', '.join(unstored)}, which capabilities.storage "
            "lacks: a device computes only in dtypes that it can store"
        )


def _check_window(name: str, window: Any) -> None:
    try:
        (low, high) = (tuple(int(n) for n in version) for version in window)
        well_formed = len(low) == len(high) == 2
    except (TypeError, ValueError):
        well_formed = False
    if not well_formed:
        raise BackendError(
            f"backend {name!r}: api must be ((major, minor), (major, minor)), the first and the last, got {window!r}"
        )
    # A minor version only adds, so a newer minor of the last major is compatible. A core before the first is not.
    if low <= API_VERSION and API_VERSION[0] <= high[0]:
        return
    advice = "update candelabra" if low > API_VERSION else f"update the package that brings {name!r}"
    raise BackendError(
        f"backend {name!r} was built for core API {_text(low)} to {_text(high)}, this core has {_text(API_VERSION)}: "
        + advice
    )


def _text(version: tuple[int, ...]) -> str:
    return f"{version[0]}.{version[1]}"


def checked_kernels(backend: Backend) -> dict[str, Kernel]:
    """Return the kernel table. Raise BackendError for unknown operators and for values that are not callable."""
    table = dict(backend.kernels())
    for name, kernel in table.items():
        check_kernel(f"backend {backend.name!r}", name, kernel)
    return table


def check_kernel(who: str, name: Any, kernel: Any) -> None:
    """Check one entry of a kernel table. ``who`` is its source, such as ``backend 'acme'``."""
    if not isinstance(name, str):
        raise BackendError(f"{who} has a kernel for {shown(name)}, which is not the name of an operator")
    base = operator_of(name)
    if base not in OPERATORS:
        raise BackendError(f"{who} has a kernel for {name!r}, but no operator has that name")
    if not callable(kernel):
        raise BackendError(f"{who}: the kernel of {name!r} is not callable: {shown(kernel)}")
    count = outline(base).parameters
    if not accepts(kernel, count):
        raise BackendError(
            f"{who}: the kernel of {name!r} does not accept {count} positional "
            f"argument{'s' * (count != 1)}: {', '.join(p.name for p in OPERATORS[base].schema.parameters)}"
        )


def accepts(kernel: Any, count: int) -> bool:
    """Return whether a function accepts ``count`` positional arguments, or True if it does not show its parameters.

    It reads the code object, because ``inspect`` would take longer than the plugin's import for a table of kernels.
    """
    method = kernel if hasattr(kernel, "__func__") else None if hasattr(kernel, "__code__") else kernel.__call__
    function = kernel if method is None else getattr(method, "__func__", None)
    code = getattr(function, "__code__", None)
    if function is None or code is None:
        return True
    most = code.co_argcount - (method is not None)
    least = most - len(function.__defaults__ or ())
    required = code.co_kwonlyargcount > len(function.__kwdefaults__ or ())
    variadic = bool(code.co_flags & VARIADIC)
    return not required and (least <= count <= most or (variadic and count >= least))
