"""When a kernel raises: run the operator's rule to say what is wrong in the user's words.

Nothing here costs the happy path anything: kernels check what they must, once, and only their failure comes here.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def fail(op: Operator[..., Any], error: BaseException, args: tuple[Any, ...]) -> NoReturn:
    """Raise what the rule finds wrong with the arguments; if it finds nothing, the kernel's own error with a note."""
    try:
        check(op, args)
    except Exception as found:
        found.__cause__ = None if type(found) is type(error) else error
        raise found from (None if found is error else error)
    error.add_note(f"raised by the kernel of {op.name!r} on {describe(args)}")
    raise error


def check(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
    """The result's shape by the record's rule, or the error in the user's words: the rule's, or that of its check of
    values."""
    shape = op.rule(op, args)
    if op.check is not None:
        op.check(*args)
    return shape


def describe(args: tuple[Any, ...]) -> str:
    """Arguments in a line: tensors by shape, dtype and device, the rest by value."""

    def one(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"{value.dtype.name}{list(value._payload.shape)} on {value.device}"
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            return "[" + ", ".join(one(v) for v in value) + "]"
        text = repr(value)
        return text if len(text) < 60 else text[:57] + "..."

    return "(" + ", ".join(one(a) for a in args) + ")"
