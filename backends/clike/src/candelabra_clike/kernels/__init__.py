"""The kernel table. Every module of this package that defines a dictionary ``KERNELS`` contributes it.

A kernel is a function on :class:`~candelabra_clike.array.StridedArray`, as the backend contract describes, or an object
with ``for_dtype(dtype)``, which returns such a function, or None to decline a dtype. Kernels with a device argument
(``zeros``, random numbers) are in dictionaries ``FACTORIES`` instead: functions of ``engines``, which maps a device
index to an engine, that return the kernel. The keys of both dictionaries follow from literals, since the index of
kernels is written without running the modules (see :mod:`candelabra_clike.tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from candelabra.backend import declared, of_dtype, outline
from candelabra.dtypes import dtype

from candelabra_clike import tables

if TYPE_CHECKING:
    from candelabra_clike.engine import Engine

Kernel = Callable[..., Any]


class LateKernel:
    """An entry of the table. Its module is imported when a dtype is served for the first time."""

    def __init__(self, name: str, load: Callable[[], Kernel]) -> None:
        self.name = name
        self._load = load

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @cached_property
    def loaded(self) -> Kernel:
        """The kernel itself."""
        return self._load()

    def for_dtype(self, d: dtype) -> Kernel | None:
        """Return the function that serves a dtype, or None if the kernel declines it."""
        return of_dtype(self.loaded, d)

    def __call__(self, *arguments: Any) -> Any:
        return self.loaded(*arguments)


def table(engines: Callable[[int], Engine]) -> dict[str, Kernel]:
    """Return ``{operator: kernel}`` for devices whose engine is ``engines(index)``, without importing a kernel."""
    kernels: dict[str, Kernel] = {name: LateKernel(name, _loading(name, engines)) for name in tables.KERNELS_IN}
    for name in declared(dict.fromkeys(tables.EXPRESSIONS_IN, table)):
        forms = (name, f"{name}_") if outline(name).inplace else (name,)
        kernels |= {form: LateKernel(form, _loading_pointwise(form)) for form in forms}
    return kernels


def _loading(name: str, engines: Callable[[int], Engine]) -> Callable[[], Kernel]:
    return lambda: tables.kernel(name, engines)


def _loading_pointwise(name: str) -> Callable[[], Kernel]:
    def load() -> Kernel:
        from candelabra_clike.kernels.pointwise import POINTWISE

        return POINTWISE[name]

    return load
