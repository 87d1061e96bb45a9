"""Calls whose kernels are not compiled. Planning a call takes 20 to 200 µs, which is wasted if NumPy then serves it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

MOST: Final = 1024
"""The number of calls that are known per operator and dtype. The set is emptied if there are more."""


class MissingCalls(set[Any]):
    """Calls of one operator and dtype, by what the choice of a kernel depends on: layouts, dtypes and options."""

    def note(self, *arguments: Any) -> None:
        """Add a call."""
        if len(self) >= MOST:
            self.clear()
        key = _key(arguments)
        try:
            self.add(key)
        except TypeError:  # an argument without a hash: the call is planned each time
            pass

    def has(self, *arguments: Any) -> bool:
        """Return whether a call with such arguments was added."""
        try:
            return _key(arguments) in self
        except TypeError:
            return False


def _key(value: Any) -> Any:
    """Return what the choice of a kernel depends on. The values of floats, such as a learning rate, do not matter."""
    kind = value.__class__
    if kind is np.ndarray:
        return value.shape, value.strides, value.dtype
    if kind is tuple or kind is list:
        return tuple([_key(each) for each in value])
    return kind if kind is float or kind is complex else value
