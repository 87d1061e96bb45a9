"""Anomaly mode: record where every node was created, and check every gradient for NaN.

The mode has no cost while it is off. As ``torch.autograd.detect_anomaly``.
"""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType
from weakref import WeakKeyDictionary

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import ANOMALY, NO_GRAD, PACK, state, switch

if TYPE_CHECKING:
    from candelabra._autograd.node import Node

_made: Final[WeakKeyDictionary[Node, tuple[list[str], Node | None]]] = WeakKeyDictionary()
"""The traceback of each node's creation and, in a backward pass with ``create_graph``, the node that was running."""


class _Settings(threading.local):
    check_nan = True
    running: Node | None = None


_settings: Final = _Settings()


def remember(node: Node) -> None:
    """Record where ``node`` is created: the frames of the user's program that lead here."""
    import traceback  # 3 ms, and only this mode needs it

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith("<candelabra"):
        frame = frame.f_back  # generated code means nothing to a user
    _made[node] = (traceback.format_list(traceback.extract_stack(frame)), _settings.running)


def made_where(node: Node) -> str | None:
    """Return the traceback of the call that created ``node``, or None if anomaly mode was off."""
    found = _made.get(node)
    return None if found is None else "".join(found[0])


def run_checked(node: Node, g: Any) -> tuple[Any, ...]:
    """Run a node. If it raises or returns NaN, warn with the traceback of its creation."""
    outer, _settings.running = _settings.running, node
    try:
        results = node.backward(g)
    except Exception:
        _report(node)
        raise
    finally:
        _settings.running = outer
    if _settings.check_nan:
        for number, r in enumerate(results):
            if r is not None and _has_nan(r):
                _report(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")
    return results


def _has_nan(g: Any) -> bool:
    if not (g.dtype.is_floating_point or g.dtype.is_complex) or not g.numel():
        return False
    before = state.bits
    switch((before | NO_GRAD) & ~(ANOMALY | PACK))
    try:
        return bool((g != g).any().item())
    finally:
        switch(before)


def _report(node: Node) -> None:
    """Warn with the traceback of the forward call, and with those of the calls that it is a derivative of."""
    found = _made.get(node)
    if found is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            UserWarning,
            stacklevel=4,
        )
        return
    lines, parent = found
    text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n" + "".join(lines)
    seen: set[Node] = {node}
    while parent is not None and parent not in seen:
        seen.add(parent)
        above = _made.get(parent)
        where = "".join(above[0]) if above else "No forward pass information available.\n"
        text += (
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{where}"
        )
        parent = above[1] if above else None
    warnings.warn(text, UserWarning, stacklevel=4)


class set_detect_anomaly:
    """Switch anomaly mode on or off at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = state.bits
        self._check = _settings.check_nan
        switch(self._before | ANOMALY if mode else self._before & ~ANOMALY)
        _settings.check_nan = check_nan

    def __enter__(self) -> None:
        """Do nothing: the constructor has set the mode."""

    def __exit__(self, *error: object) -> None:
        switch((state.bits & ~ANOMALY) | (self._before & ANOMALY))
        _settings.check_nan = self._check


class detect_anomaly(set_detect_anomaly):
    """Inside the block, a failing backward pass shows the forward call that created the failing node.

    ``check_nan``: treat NaN in a gradient as a failure too. The mode slows down every call; use it for debugging only.
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )
        super().__init__(True, check_nan)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch this thread's anomaly mode on or off."""
    set_detect_anomaly(enabled, check_nan)


def is_anomaly_enabled() -> bool:
    """Return whether this thread is in anomaly mode."""
    return bool(state.bits & ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode checks gradients for NaN."""
    return _settings.check_nan


__all__ = [
    "detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "made_where", "remember", "run_checked",
    "set_anomaly_enabled", "set_detect_anomaly",
]  # fmt: skip
