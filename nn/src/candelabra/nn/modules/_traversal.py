"""The tree of modules: members by dotted path, iteration over all members, and changes to all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, cast

from candelabra import Tensor
from candelabra.nn.parameter import Parameter, forget_gradient

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module


class Traversable:
    """The methods of a Module that find its parameters, buffers and modules, or iterate over them."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    # -- one by its path ----------------------------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """Return the module at a dotted path such as ``"net.0"``; the empty path is this module."""
        found = cast("Module", self)
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            child = getattr(found, name)
            if not isinstance(child, Traversable):
                raise AttributeError(f"`{name}` is not an nn.Module")
            found = cast("Module", child)
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module at a dotted path, or add one there unless ``strict``."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Traversable):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Traversable):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path."""
        owner, name = self._owner_of(target)
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path."""
        owner, name = self._owner_of(target)
        found = owner._buffers.get(name)
        if found is None:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _owner_of(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name

    # -- all ----------------------------------------------------------------------------------------------------------
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and its descendants with their dotted paths; each object once by default."""
        memo = set() if memo is None else memo
        this = cast("Module", self)
        if this in memo:
            return
        if remove_duplicate:
            memo.add(this)
        yield prefix, this
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and its descendants; each object once by default."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the direct children, each once, with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Iterate over the direct children."""
        return (module for _, module in self.named_children())

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over the members that a function returns of each module, with their dotted paths."""
        seen: set[int] = set()
        this = cast("Module", self)
        found = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, this)]
        for path, module in found:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over all parameters with their dotted paths; each object once by default."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over all parameters, for an optimizer."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over all buffers with their dotted paths; each object once by default."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over all buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # -- something done to all ----------------------------------------------------------------------------------------
    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` with every descendant and then with this module, for instance to initialize them."""
        for module in self.children():
            module.apply(fn)
        fn(cast("Module", self))
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, on which Dropout and others depend, for this module and its descendants."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and its descendants."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters are trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            forget_gradient(parameter, set_to_none)
