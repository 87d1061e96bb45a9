"""The kernels that serve an operator on a device: its owner's, contributed ones, or one that was registered.

A device type has one owner, the distribution with its backend. Other distributions may contribute kernels to it
(``candelabra._plugins.contributed_kernels``). If an operator has contributed kernels, its entry in the device's table
is a :class:`Chain`: each kernel serves the calls that those before it decline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._keys import KERNEL_MODES, OWN_KERNELS

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._plugins.contributed_kernels import Contribution
    from candelabra.dtypes import dtype

Function = Callable[..., Any]


class KernelLink(NamedTuple):
    """One kernel of a chain, which a distribution contributes unless that is the owner."""

    kernel: Function
    contribution: Contribution | None = None

    def origin(self, name: str, instance: Instance) -> str:
        """Return which kernel serves, and where it comes from."""
        contributed = f", contributed by {self.contribution.distribution}" if self.contribution else ""
        return f"kernel {name!r} of backend {instance.backend.name!r}{contributed}"

    def function(self, name: str, compute: dtype, key: int) -> Function | None:
        """Return the function that serves a dtype under the modes in a key, or None if the kernel declines it."""
        kernel: Any = self.kernel
        if self.contribution is not None and key & KERNEL_MODES:
            if key & OWN_KERNELS:
                return None
            kernel = self.contribution.of_every_size().get(name, kernel)
        return of_dtype(kernel, compute)


class Chain:
    """The kernels of one operator in the order in which they serve. Called as a kernel, it tries one after another."""

    __slots__ = ("links",)

    def __init__(self, links: Sequence[KernelLink]) -> None:
        self.links = tuple(links)

    def __repr__(self) -> str:
        names = [link.contribution.distribution if link.contribution else "the owner" for link in self.links]
        return f"<kernels of {', then '.join(names)}>"

    def for_dtype(self, compute: dtype) -> Function | None:
        """Return the function that serves a dtype, or None if all kernels decline it."""
        functions = [link.function("", compute, 0) for link in self.links]
        return in_turn([function for function in functions if function is not None])

    def __call__(self, *args: Any) -> Any:
        function = in_turn([link.kernel for link in self.links])
        assert function is not None
        return function(*args)


def of_dtype(kernel: Any, compute: dtype) -> Function | None:
    """Return the function of a kernel that serves a dtype, or None if the kernel declines it.

    A contributed kernel that leaves calls to what served before gets the function once, in its own ``for_dtype``, which
    is faster than a call of the kernel.
    """
    choose: Callable[[dtype], Function | None] | None = getattr(kernel, "for_dtype", None)
    return kernel if choose is None else choose(compute)


def in_turn(functions: Sequence[Function]) -> Function | None:
    """Return a function that returns the first result that is not NotImplemented, or None if there is no function.

    Its attribute ``first`` is the first function, whose own attributes a device may use when it compiles graphs.
    """
    if len(functions) < 2:
        return functions[0] if functions else None

    def kernel(*args: Any) -> Any:
        for function in functions:
            result = function(*args)
            if result is not NotImplemented:
                break
        return result

    kernel.first = functions[0]  # type: ignore[attr-defined]
    return kernel


def serving(instance: Instance, name: str, compute: dtype, key: int = 0) -> list[KernelLink]:
    """Return the functions that serve an operator and a dtype on a device, in order; those that decline it are left
    out.

    Under the mode OWN_KERNELS in ``key``, contributed kernels are left out too; under EVERY_SIZE, they serve calls of
    every size.
    """
    kernel: Any = instance.kernels.get(name)
    if kernel is None:
        return []
    links = kernel.links if isinstance(kernel, Chain) else (KernelLink(kernel),)
    found = [(link.function(name, compute, key), link.contribution) for link in links]
    return [KernelLink(_lowered(function, instance), source) for function, source in found if function is not None]


def settle(instance: Instance, name: str, compute: dtype) -> None:
    """Let kernels with a method ``settle`` find out whether they serve a dtype, which they postpone otherwise."""
    kernel: Any = instance.kernels.get(name)
    for link in kernel.links if isinstance(kernel, Chain) else (KernelLink(kernel),):
        if hasattr(link.kernel, "settle"):
            link.kernel.settle(compute)


def kernel_for(instance: Instance, name: str, compute: dtype, key: int = 0) -> Function | None:
    """Return the function that serves an operator and a dtype on a device, or None if there is none.

    The modes in ``key`` decide whether it is a contributed one, as in :func:`serving`.
    """
    return in_turn([link.kernel for link in serving(instance, name, compute, key)])


def _lowered(function: Function, instance: Instance) -> Function:
    """Return the kernel of a virtual device under the modes of the level below, or any other kernel as it is."""
    if not instance.capabilities.virtual:
        return function
    from candelabra._dispatch.levels import lowered

    run: Function = lowered(function, instance)
    return run
