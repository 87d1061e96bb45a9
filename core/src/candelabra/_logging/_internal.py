"""What PyTorch's documentation uses to show logs without prefixes."""

from __future__ import annotations

import logging

from candelabra._compile import observing

_default_formatter = observing.default_formatter
DEFAULT_FORMATTER: logging.Formatter = _default_formatter()


def _init_logs() -> None:
    """Apply ``DEFAULT_FORMATTER`` and the logs that the environment selects."""
    observing.configure_from_environment()
    observing.set_formatter(DEFAULT_FORMATTER)


__all__ = ["DEFAULT_FORMATTER"]
