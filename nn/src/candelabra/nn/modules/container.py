"""Modules that contain modules or parameters: in sequence, in a list, by name."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import index as as_index
from typing import Any, Never, Self, cast, overload

from candelabra import Tensor
from candelabra.nn.modules.module import Module, _addindent, typename
from candelabra.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Modules under the names of keyword arguments. Deprecated in PyTorch: a subclass of Module does the same."""

    def __init__(self, **modules: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


def _name_of_entry(index: Any, length: int) -> str:
    """Return the name of an entry by its index, which counts from the end if negative."""
    number = as_index(index)
    if not -length <= number < length:
        raise IndexError(f"index {number} is out of range")
    return str(number % length)


class _IndexedModules(Module):
    """The common base of Sequential and ModuleList: modules under the names "0", "1", …; an entry may be None."""

    def _renumber(self, modules: Iterable[Module | None]) -> None:
        members = {str(number): module for number, module in enumerate(modules)}
        self._modules.clear()
        self._modules.update(members)

    def _get_abs_string_index(self, index: Any) -> str:
        return list(self._modules)[int(_name_of_entry(index, len(self)))]

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return self._subset(index)
        return cast("Module", self._modules[self._get_abs_string_index(index)])

    def _subset(self, part: slice) -> Self:
        return type(self)(list(self._modules.values())[part])

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: int | slice) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._get_abs_string_index(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the given index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int | slice = -1) -> Module:
        """Remove a module, or the modules of a slice, and return it."""
        found = self[key]
        del self[key]
        return found


class Sequential(_IndexedModules):
    """Modules called one after the other, each with the output of the one before it.

    ``Sequential(first, second, …)``, or ``Sequential({"name": module, …})`` to name them. ``*`` repeats the modules:
    ``Sequential(layer) * 3`` calls the same layer three times.
    """

    @overload
    def __init__(self, *modules: Module) -> None: ...
    @overload
    def __init__(self, modules: Mapping[str, Module], /) -> None: ...
    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], Mapping)
        pairs: Any = modules[0].items() if named else enumerate(modules)
        for name, module in pairs:
            self.add_module(name if named else str(name), module)

    def _subset(self, part: slice) -> Self:
        return type(self)(OrderedDict(list(self._modules.items())[part]))  # type: ignore[arg-type]

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        return super().extend(sequential)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_checked_sequential(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_checked_sequential(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._checked_factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._checked_factor(other) - 1))

    def _checked_factor(self, factor: Any) -> int:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")
        return factor


def _checked_sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


class ModuleList(_IndexedModules):
    """A list of modules, which are registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Show equal modules that follow each other once, with their number."""
        lines = []
        for text, group in groupby(enumerate(map(repr, self)), key=lambda pair: pair[1]):
            numbers = [number for number, _ in group]
            first, last = numbers[0], numbers[-1]
            shown = f"({first}): {text}" if first == last else f"({first}-{last}): {len(numbers)} x {text}"
            lines.append("\n  " + _addindent(shown, 2))
        return self._get_name() + "(" + "".join(lines) + ("\n)" if lines else ")")


class ModuleDict(Module):
    """A dictionary of modules, which are registered under their keys."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return cast("Module", self._modules[key])

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and module."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _pairs(name: str, entries: Any) -> list[tuple[str, Any]]:
    if hasattr(entries, "items"):
        return list(entries.items())
    pairs = []
    for number, pair in enumerate(entries):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{number} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{number} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


def _as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter, and anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters, which are registered; a plain Tensor becomes one."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _get_abs_string_index(self, index: Any) -> str:
        return _name_of_entry(index, self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[number] for number in range(*index.indices(self._size))])
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._get_abs_string_index(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[number] for number in range(self._size)])

    def append(self, value: Any) -> Self:
        """Add a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({number}): {_described(value, False)}" for number, value in enumerate(self))

    def __call__(self, *_: Any, **__: Any) -> Never:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, which are registered under their keys; a plain Tensor becomes one."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if self._key_to_attr(key) not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._key_to_attr(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made: ParameterDict = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return another ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key, or the default."""
        return self[key] if key in self else default  # noqa: SIM401 - this is that method

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key, and register the default under the key if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter and return its key and it. Raise ``KeyError`` if there is none."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with the same value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and parameter."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping or from pairs. As in PyTorch, those of a plain mapping in order of the keys."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        pairs = _pairs("ParameterDict", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_described(value, True)}" for key, value in self.items())

    def __call__(self, *_: Any, **__: Any) -> Never:
        raise RuntimeError("ParameterDict should not be called.")


def _described(value: Any, as_type: bool) -> str:
    """Return the line of a member, with its dtype, or with the name of its type as PyTorch prints in ParameterDict."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(map(str, value.shape))
    where = "" if value._instance.capabilities.host else f" ({value.device})"
    return f"{kind} containing: [{typename(value) if as_type else value.dtype} of size {sizes}{where}]"


def __dir__() -> list[str]:
    return sorted(__all__)
