"""The modes of recording: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``.

Each is a context manager and a decorator, also of generators and coroutines. All modes together are one int per thread
(``keys.state.bits``): a mode costs one thread-local read on entry and one write on exit, and does not affect other
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from types import CodeType

from candelabra._annotations import Any, Final, TypeVar
from candelabra._dispatch.levels import active_levels, follow, unfollow
from candelabra._keys import INFERENCE_MODE, NO_GRAD, RECORDING_MODES, state, switch

F = TypeVar("F", bound=Callable[..., Any])

_GENERATOR: Final = 0x20  # inspect.CO_GENERATOR, without importing inspect
_COROUTINE: Final = 0x80 | 0x100
_ASYNC_GENERATOR: Final = 0x200


class Mode:
    """A reentrant context manager and decorator. Subclasses define how the mode bits change."""

    follows = True
    """Whether the levels of function transforms follow, see :func:`~candelabra._dispatch.levels.follow`."""
    _followed: list[list[tuple[int, int]]] = []  # noqa: RUF012 - replaced, never changed
    """The modes of the levels of function transforms outside each block."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def _bits(self, before: int) -> int:
        """Return the mode bits inside the block, given those outside."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _bits()")

    def _again(self) -> Mode:
        """Return a new mode with the same settings, for one call of a decorated function."""
        return type(self)()

    def __enter__(self) -> None:
        before = state.bits
        self._before.append(before)
        switch(self._bits(before))
        if self.follows and active_levels.frames:
            self._followed = [*self._followed, follow(state.bits)]

    def __exit__(self, *error: object) -> None:
        before = self._before.pop()
        switch((state.bits & ~RECORDING_MODES) | (before & RECORDING_MODES))
        if self._followed:
            *self._followed, last = self._followed
            unfollow(last)

    def __call__(self, function: F) -> F:
        """Decorate a function, a generator function, a coroutine function, or every method call of a class's
        ``__init__``.
        """
        decorated: F = _decorated(self, function)
        return decorated


def _decorated(mode: Mode, function: Any) -> Any:
    if isinstance(function, type):
        function.__init__ = _decorated(mode, function.__init__)  # type: ignore[misc]
        return function
    code = getattr(function, "__code__", None)
    flags = code.co_flags if isinstance(code, CodeType) else 0
    if flags & _ASYNC_GENERATOR:
        raise TypeError(f"{type(mode).__name__} cannot decorate the asynchronous generator {function.__name__!r}")
    if flags & _COROUTINE:

        @wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(mode, function(*args, **kwargs).__await__())

        return coroutine
    if flags & _GENERATOR:

        @wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return (yield from _stepped(mode, function(*args, **kwargs)))

        return generator

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mode._again():
            return function(*args, **kwargs)

    return call


class _Steps:
    """An awaitable that runs each of its steps in a mode."""

    def __init__(self, mode: Mode, steps: Generator[Any, Any, Any]) -> None:
        self.mode, self.steps = mode, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield from _stepped(self.mode, self.steps))


def _stepped(mode: Mode, inner: Any) -> Generator[Any, Any, Any]:
    """Run each step of a generator in the mode, and the consumer's code between the steps in its own mode."""
    step, value = inner.__next__, ()
    while True:
        try:
            with mode._again():
                yielded = step(*value)
        except StopIteration as stop:
            return stop.value
        try:
            received = yield yielded
        except GeneratorExit:
            with mode._again():
                inner.close()
            raise
        except BaseException as error:
            step, value = inner.throw, (error,)  # type: ignore[assignment]
        else:
            if received is None:
                step, value = inner.__next__, ()
            else:
                step, value = inner.send, (received,)  # type: ignore[assignment]


class no_grad(Mode):
    """Disable recording: results do not require grad, and in-place writes to leaves are allowed. As ``torch.no_grad``.

    ``with no_grad():``, ``@no_grad()`` or ``@no_grad``.
    """

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def _bits(self, before: int) -> int:
        return before | NO_GRAD


class enable_grad(Mode):
    """Enable recording inside :class:`no_grad`. It has no effect in inference mode. As ``torch.enable_grad``."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def _bits(self, before: int) -> int:
        return before if before & INFERENCE_MODE else before & ~NO_GRAD


class set_grad_enabled(Mode):
    """Switch recording on or off at once; as a context manager, until the end of the block.

    As ``torch.set_grad_enabled``; as a decorator it leaves the caller's mode as it was.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._outer = state.bits
        switch(self._bits(self._outer))
        self._changed = follow(state.bits) if active_levels.frames else []
        """The modes of the levels of function transforms before the constructor."""

    def _bits(self, before: int) -> int:
        if not self.mode:
            return before | NO_GRAD
        return before if before & INFERENCE_MODE else before & ~NO_GRAD

    def _again(self) -> Mode:
        return _Bits(self._bits)

    def __enter__(self) -> None:
        # The constructor has set the mode, so the first block restores the mode from before the constructor.
        first = not self._before
        outer = self._outer if first else state.bits
        super().__enter__()
        self._before[-1] = outer
        if first and self._changed:
            self._followed = [*self._followed[:-1], self._changed]

    def __call__(self, function: F) -> F:
        switch((state.bits & ~RECORDING_MODES) | (self._outer & RECORDING_MODES))
        unfollow(self._changed)
        return super().__call__(function)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class _Bits(Mode):
    """A mode that is defined by a function of the bits."""

    def __init__(self, function: Callable[[int], int]) -> None:
        super().__init__()
        self._bits = function  # type: ignore[assignment,method-assign]


class inference_mode(Mode):
    """Disable recording and create inference tensors, which autograd cannot save. As ``torch.inference_mode``.

    ``inference_mode(False)`` inside the block leaves the mode and enables recording.
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _bits(self, before: int) -> int:
        return before | RECORDING_MODES if self.mode else before & ~RECORDING_MODES

    def _again(self) -> Mode:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Return whether this thread records operators for derivatives."""
    return not state.bits & NO_GRAD


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode."""
    return bool(state.bits & INFERENCE_MODE)


__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip
