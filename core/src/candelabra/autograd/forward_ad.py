"""Forward mode by dual tensors: ``dual_level``, ``make_dual``, ``unpack_dual``. As ``torch.autograd.forward_ad``.

A level is that of one :func:`candelabra.func.jvp`, which is a block here and not a function. At its end the tensors
that were computed in it keep their values and have no tangents.
"""

from __future__ import annotations

import threading
from types import TracebackType

from candelabra._annotations import Final, NamedTuple
from candelabra._dispatch.levels import active_frames
from candelabra._tensor import Tensor
from candelabra._transforms.dual import DualFrame
from candelabra._transforms.forward import check_tangent


class _DualLevels(threading.local):
    """The open levels of a thread. There is at most one."""

    def __init__(self) -> None:
        self.frames: list[DualFrame] = []


_levels: Final = _DualLevels()


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: the primal, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level of forward mode, and return its number, 0. :func:`dual_level` is the context manager.

    Raises ``RuntimeError`` in a level: nested derivatives are those of :func:`candelabra.func.jvp`.
    """
    if _levels.frames:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    frame = DualFrame()
    frame.__enter__()
    _levels.frames.append(frame)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level of :func:`enter_dual_level`. Raises ``RuntimeError`` if it is not the innermost one."""
    if not _levels.frames or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if active_frames()[-1] is not _levels.frames[-1]:
        raise RuntimeError("exit_dual_level() was called in a function that func.jvp, grad or vmap transforms")
    _levels.frames.pop().__exit__(None, None, None)


class dual_level:
    """A context manager: inside the block, :func:`make_dual` gives tensors tangents.

    The operators in the block compute the tangents of their results, which :func:`unpack_dual` returns.
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the content of ``tensor``, and a tangent of the same shape, which is cast to its dtype.

    Raises ``RuntimeError`` outside a level, and for a tensor that is not floating or complex or has a tangent.
    """
    frame = _open("make_dual")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    primal, present = frame.primal_and_tangent(tensor)
    if present is not None:
        raise RuntimeError(
            "Trying to set a tangent on a tensor that already has one. This is not supported; use unpack_dual() first"
        )
    if primal.is_complex() or not tangent.is_complex():
        tangent = tangent.to(primal.dtype)
    check_tangent("make_dual(): ", primal, tangent)
    return frame.dual(primal, frame.primal_and_tangent(tangent)[0])


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return ``(primal, tangent)`` of a tensor; the tangent is None outside a level, and for a constant."""
    if not _levels.frames:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_levels.frames[-1].primal_and_tangent(tensor))


def _open(name: str) -> DualFrame:
    if not _levels.frames:
        raise RuntimeError(
            f"Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
            f"before {name}()"
        )
    return _levels.frames[-1]


__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
