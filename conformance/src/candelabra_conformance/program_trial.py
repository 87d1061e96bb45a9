"""Run a program before it is shown, to verify that it shows the failure."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Final

from candelabra.library import mode

PASSES: Final = "# It passed when it was tried: the fault depends on what ran before, or on chance.\n"


def shows(text: str, raised: type[BaseException] = AssertionError) -> bool:
    """Return whether a program ends with AssertionError, as a reproducer must, or with the error ``raised`` of a kernel
    that fails."""
    error = error_of(text)
    return isinstance(error, AssertionError) or type(error) is raised


def error_of(text: str) -> Exception | None:
    """Return the error with which a program ends, or None. Its output is discarded."""
    quiet = io.StringIO()
    try:
        with mode(), contextlib.redirect_stdout(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # This package has written the text, for a call that it has just made.
            exec(compile(text, "reproducer", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102
    except Exception as error:
        return error
    return None


def best(text: str, otherwise: Callable[[], str]) -> str:
    """Return the first of two programs that shows its fault. If neither does, return the first, with a comment.

    A program without an assertion is left unchanged; the reader has to judge its output.
    """
    if "assert" not in text.lower() or shows(text):
        return text
    second = otherwise()
    return second if second != text and shows(second) else text + PASSES
