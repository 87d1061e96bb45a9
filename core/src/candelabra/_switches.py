"""Settings of the process that programs read and set: threads, precision of products, determinism.

A backend that has such a choice reads it here, through the public functions. A setting that no installed backend reads
is kept and has no effect.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Final
from candelabra._invalidation import invalidate

if TYPE_CHECKING:
    from collections.abc import Callable

PRECISIONS: Final = ("highest", "high", "medium")


class Switches:
    """The current settings."""

    def __init__(self) -> None:
        self.threads: int | None = None
        self.interop_threads: int | None = None
        self.matmul_precision = "highest"
        self.deterministic = False
        self.warn_only = False
        self.fill_uninitialized = True


switches: Final = Switches()
_default_threads: Final[list[int]] = []
_followers: Final[list[Callable[[int], object]]] = []


def _default_num_threads() -> int:
    """Return the number of threads without a setting. It is read once: control groups and variables are files."""
    if not _default_threads:
        from candelabra._host_threads import default_num_threads

        _default_threads.append(default_num_threads())
    return _default_threads[0]


def _positive(name: str, count: object) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return count


def get_num_threads() -> int:
    """Return the number of threads that a kernel on the host may use.

    Unless it was set, it is the least of the processors that the process may use, the quota of its control group, and
    the environment variable ``OMP_NUM_THREADS``. They are read once.
    """
    return _default_num_threads() if switches.threads is None else switches.threads


def set_num_threads(int: int) -> None:
    """Set the number of threads that a kernel on the host may use. NumPy's own threads are set by its environment.

    Raises ``RuntimeError`` unless it is positive, ``TypeError`` for another type.
    """
    switches.threads = _positive("set_num_threads", int)
    for follow in _followers:
        follow(int)


def follow_num_threads(follow: Callable[[int], object]) -> Callable[[], None]:
    """Call ``follow`` with the number of threads now, and with each number that is set later.

    A distribution whose kernels run on threads of the host sets the size of its thread pool by this. Returns a function
    that ends it.
    """
    follow(get_num_threads())
    _followers.append(follow)
    return lambda: _followers.remove(follow)


def get_num_interop_threads() -> int:
    """Return the number of threads that run several operators at once: accepted for PyTorch's programs, unused."""
    return _default_num_threads() if switches.interop_threads is None else switches.interop_threads


def set_num_interop_threads(int: int) -> None:
    """Set the number of threads that run several operators at once: accepted for PyTorch's programs, unused."""
    switches.interop_threads = _positive("set_num_interop_threads", int)


def get_float32_matmul_precision() -> str:
    """Return ``"highest"`` if products of float32 are computed in float32, else ``"high"`` or ``"medium"``."""
    return switches.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 to be computed in less precision, where a backend can: ``"high"`` or ``"medium"``.

    Raises ``ValueError`` for any other value than these and ``"highest"``.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision expects one of {', '.join(PRECISIONS)}, got {precision!r}")
    switches.matmul_precision = precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Refuse operators whose results may differ between runs, or warn of them (``warn_only``).

    A backend names these operators in its capabilities. Raises ``TypeError`` if ``mode`` is not a bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' must be bool, not {type(mode).__name__}")
    switches.deterministic, switches.warn_only = mode, warn_only
    invalidate()  # the choice was made when a call was resolved


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether operators whose results may differ between runs are refused."""
    return switches.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether such operators warn and run."""
    return switches.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set :func:`use_deterministic_algorithms` by a number or a word: 0 default, 1 warn, 2 error.

    Raises ``RuntimeError`` for any other value.
    """
    modes = {"default": 0, "warn": 1, "error": 2}
    level = modes.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if level not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, 2, default, warn or error, got {debug_mode!r}")
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0 if nothing is refused, 1 if operators warn, 2 if they raise."""
    return 0 if not switches.deterministic else 1 if switches.warn_only else 2


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers are kept, so that every device gives the same results."""
    return False
