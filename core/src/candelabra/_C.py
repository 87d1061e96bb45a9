"""Names of PyTorch's extension module that programs read or call without need: nothing is compiled or traced."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._device import get_default_device as _get_default_device
from candelabra._overrides import disabled_torch_function as _disabled_torch_function_impl
from candelabra.errors import LinAlgError as _LinAlgError


def _get_tracing_state() -> None:
    """Return None: nothing is traced."""


def _log_api_usage_once(event: str) -> None:
    """Do nothing: uses are not counted."""


def _assert(condition: Any, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition is true: ``assert`` for traced programs."""
    assert condition, message


def __getattr__(name: str) -> Any:
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *args: None  # settings of TorchScript
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "_LinAlgError", "_assert", "_disabled_torch_function_impl", "_get_default_device", "_get_tracing_state",
    "_log_api_usage_once",
]  # fmt: skip
