"""The settings of the compiler: ``candelabra.compiler.config``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps

from candelabra._annotations import Any, Final


class Config:
    """Settings that apply to calls from now on, for all threads. ``patch`` changes some until the end of a block."""

    recompile_limit: int
    """The number of programs of one compiled function. More kinds of calls run eagerly."""
    suppress_errors: bool
    """Run a function eagerly, with a warning, if a backend of the program raises while it compiles a graph."""
    passes: tuple[Callable[[Any], Any], ...]
    """Functions that get each graph of a compiled function, a ``candelabra.fx.Graph`` that they may change, before the
    device compiles it."""

    _DEFAULTS: Final[dict[str, Any]] = {"recompile_limit": 8, "suppress_errors": False, "passes": ()}
    _ALIASES: Final[dict[str, str]] = {"cache_size_limit": "recompile_limit"}
    """Earlier names of PyTorch's."""

    def __init__(self) -> None:
        vars(self).update(self._DEFAULTS)

    def __getattr__(self, name: str) -> Any:
        if name in self._ALIASES:
            return getattr(self, self._ALIASES[name])
        raise AttributeError(f"candelabra.compiler.config has no setting {name!r}; it has {', '.join(self._DEFAULTS)}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = self._ALIASES.get(name, name)
        if name not in self._DEFAULTS:
            getattr(self, name)
        expected = type(self._DEFAULTS[name])
        if expected is tuple and isinstance(value, list):
            value = tuple(value)
        if type(value) is not expected or (expected is int and value < 1):
            kind = "a positive int" if expected is int else expected.__name__
            raise TypeError(f"candelabra.compiler.config.{name}: expected {kind}, got {value!r}")
        vars(self)[name] = value

    def __dir__(self) -> list[str]:
        return sorted([*self._DEFAULTS, *self._ALIASES, "patch"])

    def patch(self, changes: Mapping[str, Any] | str | None = None, value: Any = None, **more: Any) -> Any:
        """Return a context manager, also a decorator, with other values of some settings: ``patch(name=value)``,
        ``patch({name: value})`` or ``patch(name, value)``.
        """
        changes = {changes: value} if isinstance(changes, str) else dict(changes or {})
        return _Patch(self, {**changes, **more})


class _Patch:
    def __init__(self, config: Any, changes: dict[str, Any]) -> None:
        self.config, self.changes = config, changes
        self._blocks: list[Any] = []

    def __enter__(self) -> None:
        block = self._block()
        block.__enter__()
        self._blocks.append(block)

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Patch(self.config, self.changes):
                return function(*args, **kwargs)

        return call

    @contextmanager
    def _block(self) -> Iterator[None]:
        before = {name: getattr(self.config, name) for name in self.changes}
        try:
            for name, value in self.changes.items():
                setattr(self.config, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(self.config, name, value)


config: Final = Config()

__all__ = ["Config", "config"]
