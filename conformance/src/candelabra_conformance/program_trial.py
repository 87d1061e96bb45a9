"""A program is tried before it is shown: whether it ends as a reproducer must."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Final

PASSES: Final = "# (it passed when it was tried: the fault hangs on what ran before, or on chance)\n"


def shows(text: str) -> bool:
    """Run a program here and now, its output kept back: whether it ends with AssertionError, as it is meant to."""
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The text was written by this package, of a call that has just been made.
            exec(compile(text, "reproducer", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102
    except AssertionError:
        return True
    except Exception:
        return False
    return False


def best(text: str, otherwise: Callable[[], str]) -> str:
    """The first of two programs that shows its fault. Where neither does, the first, and a comment that says so.

    A program that asserts nothing is for a reader to judge, and stays as it is.
    """
    if "assert" not in text.lower() or shows(text):
        return text
    second = otherwise()
    return second if second != text and shows(second) else text + PASSES
