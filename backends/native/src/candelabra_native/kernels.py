"""The kernels that are contributed: those of :mod:`candelabra_clike` over NumPy arrays.

To register them imports no kernel. The first call that a kernel serves imports its module, and
:mod:`candelabra_native.wrapping`, which makes the function around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from candelabra.backend import declared, of_dtype, operator_of, outline
from candelabra.dtypes import dtype
from candelabra_clike.kernels import table
from candelabra_cpu.backend import FROM_NUMPY

from candelabra_native.thresholds import threshold

if TYPE_CHECKING:
    from candelabra_native.engine import NativeEngine

Kernel = Callable[..., Any]


@lru_cache(1)
def host(index: int) -> NativeEngine:
    """Return the engine of the host, the only device."""
    from candelabra_native.engine import ENGINE

    return ENGINE


def contributed(own: Mapping[str, Kernel], every_size: bool = False) -> dict[str, Kernel]:
    """Return ``{operator: kernel}``. ``own`` has the owner's, which serve small calls unless ``every_size`` is true.

    A kernel that serves no size otherwise is in the table too, since only what is in it can serve every size. The owner
    makes views.
    """
    return {
        name: Native(name, operator, kernel, own.get(name), every_size or name not in own)
        for name, kernel in declared(table(host)).items()
        if not outline(operator := operator_of(name)).view
    }


class Native:
    """The kernel of an operator, with a function for each dtype.

    With ``every_size``, it serves all sizes, otherwise those from its threshold on.
    """

    def __init__(self, name: str, operator: str, kernel: Any, own: Any, every_size: bool) -> None:
        self.name = name
        self.operator = operator
        self.every_size = every_size
        self.kernel = kernel
        self.own = own
        self._functions: dict[dtype, Kernel | None] = {}

    def for_dtype(self, d: dtype) -> Kernel | None:
        """Return the function for a dtype, or None if the owner's kernel serves it.

        Whether C has a kernel for the dtype is known after the first call that is not small: until then the function
        may be one that always calls the owner's kernel. :meth:`settle` makes it known.
        """
        if d not in self._functions:
            least = 0 if self.every_size else threshold(self.name, d)
            own = of_dtype(self.own, d)
            if not least or own is None:
                self._functions[d] = None if least is None else self._loaded(d, least)
            else:
                from candelabra_native.small_calls import small_calls_first

                load = partial(self._or_owner, d, least, own)
                self._functions[d] = small_calls_first(self.operator, self.name, d, least, own, load)
        return self._functions[d]

    def settle(self, d: dtype) -> None:
        """Import the kernel, so that :meth:`for_dtype` returns None where it declines the dtype."""
        if self.for_dtype(d) is not None and of_dtype(self.kernel, d) is None:
            self._functions[d] = None

    def _loaded(self, d: dtype, least: int) -> Kernel | None:
        """Return the function for calls from a number of elements on, or None if there is no kernel for the dtype."""
        kernel = of_dtype(self.kernel, d)
        if kernel is None:
            return None
        from candelabra_native.wrapping import wrapped

        return wrapped(self.name, self.operator, kernel, of_dtype(self.own, d), d, least)

    def _or_owner(self, d: dtype, least: int, own: Kernel) -> Kernel:
        """Return the function for all calls: the owner's kernel, if there is none in C."""
        loaded = self._loaded(d, least)
        if loaded is not None:
            return loaded
        from candelabra_native.small_calls import always_small

        return always_small(self.operator, own)

    def __call__(self, *arguments: Any) -> Any:
        arrays = (a for a in arguments if isinstance(a, np.ndarray))
        first = next(arrays, None)
        d = next(a for a in arguments if isinstance(a, dtype)) if first is None else FROM_NUMPY[first.dtype]
        function = self.for_dtype(d)
        return NotImplemented if function is None else function(*arguments)
