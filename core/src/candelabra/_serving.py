"""The kernels that serve an operator on a device: its owner's, contributed ones, or one that was registered.

A device type has one owner, the distribution with its backend. Other distributions may contribute kernels to it
(``candelabra._plugins.contributed_kernels``). If an operator has contributed kernels, its entry in the device's table
is a :class:`Chain`: each kernel serves the calls that those before it decline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra.dtypes import dtype

Function = Callable[..., Any]


class Link(NamedTuple):
    """One kernel of a chain. ``distribution`` is the one that contributes it, or empty for the owner's kernel."""

    kernel: Function
    distribution: str

    def origin(self, name: str, instance: Instance) -> str:
        """Return which kernel serves, and where it comes from."""
        contributed = f", contributed by {self.distribution}" if self.distribution else ""
        return f"kernel {name!r} of backend {instance.backend.name!r}{contributed}"


class Chain:
    """The kernels of one operator in the order in which they serve. Called as a kernel, it tries one after another."""

    __slots__ = ("links",)

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = tuple(links)

    def __repr__(self) -> str:
        return f"<kernels of {', then '.join(link.distribution or 'the owner' for link in self.links)}>"

    def for_dtype(self, compute: dtype) -> Function | None:
        """Return the function that serves a dtype, or None if all kernels decline it."""
        functions = [of_dtype(link.kernel, compute) for link in self.links]
        return in_turn([function for function in functions if function is not None])

    def __call__(self, *args: Any) -> Any:
        function = in_turn([link.kernel for link in self.links])
        assert function is not None
        return function(*args)


def of_dtype(kernel: Any, compute: dtype) -> Function | None:
    """Return the function of a kernel that serves a dtype, or None if the kernel declines it."""
    choose: Callable[[dtype], Function | None] | None = getattr(kernel, "for_dtype", None)
    return kernel if choose is None else choose(compute)


def in_turn(functions: Sequence[Function]) -> Function | None:
    """Return a function that returns the first result that is not NotImplemented, or None if there is no function."""
    if len(functions) < 2:
        return functions[0] if functions else None

    def kernel(*args: Any) -> Any:
        for function in functions:
            result = function(*args)
            if result is not NotImplemented:
                break
        return result

    return kernel


def serving(instance: Instance, name: str, compute: dtype, own: bool = False) -> list[Link]:
    """Return the functions that serve an operator and a dtype on a device, in order; those that decline it are left
    out.

    With ``own``, contributed kernels are left out too.
    """
    kernel: Any = instance.kernels.get(name)
    if kernel is None:
        return []
    links = kernel.links if isinstance(kernel, Chain) else (Link(kernel, ""),)
    found = []
    for link in links:
        function = None if own and link.distribution else of_dtype(link.kernel, compute)
        if function is not None:
            found.append(Link(_lowered(function, instance), link.distribution))
    return found


def kernel_for(instance: Instance, name: str, compute: dtype, own: bool = False) -> Function | None:
    """Return the function that serves an operator and a dtype on a device, or None if there is none.

    With ``own``, it is the owner's, and contributed kernels are passed over.
    """
    return in_turn([link.kernel for link in serving(instance, name, compute, own)])


def _lowered(function: Function, instance: Instance) -> Function:
    """Return the kernel of a virtual device under the modes of the level below, or any other kernel as it is."""
    if not instance.capabilities.virtual:
        return function
    from candelabra._dispatch.levels import Lowered

    return Lowered(function, instance)
