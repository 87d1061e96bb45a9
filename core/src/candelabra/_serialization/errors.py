"""The one error of every file reader: which file, what was expected there, what was found."""

from __future__ import annotations

__all__ = ["FileFormatError", "kind_of"]


class FileFormatError(RuntimeError):
    """A file is truncated, damaged, or holds something that no reader here builds.

    A RuntimeError, as PyTorch raises for unreadable files. The parts of the message stay on the exception.

    Attributes:
        file: the path, or the word for a file object.
        expected: what the format asks for at that place.
        got: what was there.
        hint: what the user can do about it, or "".
    """

    def __init__(self, file: str, expected: str, got: str, hint: str = "") -> None:
        self.file = file
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(f"cannot read {file}: expected {expected}, got {got}" + (f"; {hint}" if hint else ""))


def kind_of(value: object) -> str:
    """A value's type with its article, for messages: "an int". The value itself may be long, deep or hostile."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
