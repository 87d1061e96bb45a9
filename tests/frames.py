"""Count the Python functions that a call enters, so that tests keep frequent calls short."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import candelabra as cd
import candelabra.nn as nn

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
CORE, NETWORKS = (str(Path(str(module.__file__)).parent) for module in (cd, nn))


def frames(call: Callable[[], Any], counted: Callable[[str], bool] = lambda file: True) -> int:
    """Return the Python functions that a call enters, after two calls have initialised it: the least of three calls.

    ``counted`` selects the functions by their file. Comprehensions are not counted: they are functions only before
    Python 3.12. Each step of a generator is. What a call does for other calls is not counted: the garbage collector is
    off, and work that a device does after several calls, such as to flush its queue, is not in all three.
    """
    call()
    call()
    return min(_frames(call, counted) for _ in range(3))


def _frames(call: Callable[[], Any], counted: Callable[[str], bool]) -> int:
    """Return the functions that one call enters."""
    count = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        code = frame.f_code
        count += event == "call" and code.co_name not in COMPREHENSIONS and counted(code.co_filename)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count - counted(call.__code__.co_filename)


def library_frames(call: Callable[[], Any]) -> int:
    """Return the functions of the core and of nn that a call enters, with those that they generate, without kernels."""
    return frames(call, _is_of_the_library)


def _is_of_the_library(file: str) -> bool:
    generated = file.startswith("<candelabra ") and not file.startswith(("<candelabra kernel ", "<candelabra forms "))
    return generated or file.startswith((CORE, NETWORKS))
