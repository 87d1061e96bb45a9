"""``__torch_function__``: Tensor subclasses and other objects that take part in calls of operators.

An instance of a subclass has the bit ``OVERRIDE`` in its keys, so a call with one has a key of its own, which resolves
to a function that calls ``__torch_function__``. Calls with plain tensors and Parameters only have no such key, and cost
nothing. ``NO_OVERRIDE`` is the mode bit that disables the protocol: then the rest of the key decides.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from candelabra._annotations import Any, Final
from candelabra._keys import FUNCTION_MODE, NO_OVERRIDE, OVERRIDE, state, switch


def disabled_torch_function(*_: Any, **__: Any) -> Any:
    """The value of ``__torch_function__`` in subclasses of Tensor whose operators return plain tensors."""
    return NotImplemented


class _ModeStack(threading.local):
    """The function modes of a thread, innermost last."""

    def __init__(self) -> None:
        self.modes: list[Any] = []


modes: Final = _ModeStack()
in_use: Final[list[None]] = []
"""Not empty if a Tensor with the bit ``OVERRIDE`` was created, so that the engine disables the protocol."""
callables_in_use: Final[list[None]] = []
"""Not empty if a Tensor of a class that handles public callables was created, so that these look for such classes."""


def participates(cls: type) -> bool:
    """Return whether instances of a class handle calls."""
    handler = getattr(cls, "__torch_function__", None)
    return handler is not None and handler is not disabled_torch_function


def takes_callables(values: Iterable[Any]) -> bool:
    """Return whether a class among those of the arguments handles public callables too, and not operators only.

    Such a class has the attribute ``handles_public_callables``: its instances have another shape than their payload,
    which the bodies of callables read.
    """
    return not state.bits & NO_OVERRIDE and any(
        getattr(type(value), "handles_public_callables", False) for value in values
    )


def converted(value: Any, tensor: type, cls: type) -> Any:
    """Return a result with its instances of ``tensor``, the class Tensor, as instances of the subclass ``cls``."""
    if isinstance(value, tensor):
        return value if isinstance(value, cls) else value.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(value, (tuple, list)):
        items = [converted(item, tensor, cls) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def bit_of(cls: type) -> int:
    """Return the key bit of the instances of a Tensor subclass."""
    if not participates(cls):
        return 0
    if not in_use:
        in_use.append(None)
    if not callables_in_use and getattr(cls, "handles_public_callables", False):
        callables_in_use.append(None)
    return OVERRIDE


def overloaded_arguments(values: Iterable[Any], plain: type) -> list[Any]:
    """Return one argument of each class that handles the call, subclasses before their bases.

    ``plain`` is the class Tensor. Lists and tuples are searched too.
    """
    found: list[Any] = []
    for value in values:
        for item in value if isinstance(value, (tuple, list)) else (value,):
            cls = type(item)
            if cls is plain or any(type(other) is cls for other in found) or not participates(cls):
                continue
            index = next((i for i, other in enumerate(found) if issubclass(cls, type(other))), len(found))
            found.insert(index, item)
    return found


def call_override(
    function: Callable[..., Any], relevant: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any], plain: type
) -> Any:
    """Call the innermost function mode, then ``__torch_function__`` of each class, until one handles the call.

    Raises ``TypeError`` if none does.
    """
    enabled = not state.bits & NO_OVERRIDE
    found = overloaded_arguments(relevant, plain) if enabled else []
    types = tuple(type(argument) for argument in found)
    tried: list[str] = []
    if state.bits & FUNCTION_MODE:
        mode = modes.modes[-1]
        with _OutsideOfMode():
            result = mode.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
        tried.append(f"  - mode object {mode!r}")
    for argument in found:
        result = type(argument).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', function)}"
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join([*tried, *(f"  - tensor subclass {cls!r}" for cls in types)])
    )


class _Switched:
    """A block of code with other mode bits."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def _bits(self, bits: int) -> int:
        raise NotImplementedError("a subclass returns its bits")

    def __enter__(self) -> None:
        self._before.append(state.bits)
        switch(self._bits(state.bits))

    def __exit__(self, *_: object) -> None:
        switch(self._before.pop())


class DisableTorchFunctionSubclass(_Switched):
    """Inside the block, Tensor subclasses are treated as plain tensors, so results are plain tensors."""

    def _bits(self, bits: int) -> int:
        return bits | NO_OVERRIDE


class DisableTorchFunction(_Switched):
    """As :class:`DisableTorchFunctionSubclass`, and function modes are not called either."""

    def _bits(self, bits: int) -> int:
        return (bits | NO_OVERRIDE) & ~FUNCTION_MODE


class _OutsideOfMode(_Switched):
    """The block in which the innermost function mode runs: the modes outside it are active."""

    def __enter__(self) -> None:
        self._mode = modes.modes.pop()
        super().__enter__()

    def _bits(self, bits: int) -> int:
        return bits if modes.modes else bits & ~FUNCTION_MODE

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        modes.modes.append(self._mode)


class TorchFunctionMode(_Switched):
    """A context manager whose ``__torch_function__`` is called for every operator inside the block.

    Subclasses define ``__torch_function__(self, func, types, args=(), kwargs=None)``, in which the mode is off.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__")

    def __enter__(self) -> Any:
        modes.modes.append(self)
        super().__enter__()
        return self

    def _bits(self, bits: int) -> int:
        return bits | FUNCTION_MODE

    def __exit__(self, *error: object) -> None:
        modes.modes.pop()
        super().__exit__(*error)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls the function: what subclasses pass on to, with the function and arguments that they choose."""

    def __torch_function__(
        self, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))
