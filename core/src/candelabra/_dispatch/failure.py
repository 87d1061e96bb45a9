"""Errors of kernels: run the operator's shape rule, which describes invalid arguments in the user's terms.

Successful calls do not run the rule: kernels check the arguments once, and only their failure leads here.
"""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._tensor import Tensor
from candelabra.errors import BackendError, OutOfMemoryError

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def fail(op: Operator[..., Any], error: BaseException, args: tuple[Any, ...]) -> NoReturn:
    """Raise the rule's error about the arguments or, if it has none, the kernel's own error with a note.

    If memory was the reason, which kernels report in many ways, the error is OutOfMemoryError.
    """
    try:
        shape = check(op, args)
    except Exception as found:
        found.__cause__ = None if type(found) is type(error) else error
        raise found from (None if found is error else error)
    if not isinstance(error, OutOfMemoryError) and (isinstance(error, MemoryError) or _is_too_large(shape)):
        reason = f": {error}" if isinstance(error, MemoryError) and str(error) else ""
        raise OutOfMemoryError(f"{op.name}(): the device has not enough memory{reason}; {describe(args)}") from error
    error.add_note(f"raised by the kernel of {op.name!r} on {describe(args)}")
    raise error


def fail_body(op: Operator[..., Any], error: BaseException, args: tuple[Any, ...]) -> NoReturn:
    """Raise the rule's error about the arguments of a composite or, if it has none, the error of its body.

    The operators that the body calls describe their own arguments, which the user may not know.
    """
    try:
        check(op, args)
    except Exception as found:
        found.__cause__ = None if type(found) is type(error) else error
        raise found from (None if found is error else error)
    raise error


def no_result(op: Operator[..., Any], args: tuple[Any, ...]) -> NoReturn:
    """Raise ``BackendError`` for a kernel that returned None, which usually lacks its ``return``."""
    raise BackendError(f"the kernel of {op.name!r} returned None instead of a payload, for {describe(args)}")


def check(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the result's shape by the record's rule. Raise the error of the rule or of the record's value check."""
    shape = op.rule(op, args)
    if op.check is not None and not any(isinstance(a, Tensor) and a._instance.depth for a in args):
        op.check(*args)  # inside a function transform, the kernel of the level below has made this check
    return shape


def _is_too_large(shape: Any) -> bool:
    """Return whether a result of a shape has more elements than any memory can hold."""
    return isinstance(shape, tuple) and all(isinstance(n, int) for n in shape) and prod(shape) >= 2**56


def describe(args: tuple[Any, ...]) -> str:
    """Return the arguments in one line: tensors by shape, dtype and device, other arguments by value."""

    def one(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"{value.dtype.name}{list(value._payload.shape)} on {value.device}"
        if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
            return "[" + ", ".join(one(v) for v in value) + "]"
        text = repr(value)
        return text if len(text) < 60 else text[:57] + "..."

    return "(" + ", ".join(one(a) for a in args) + ")"
