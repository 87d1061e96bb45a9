"""Errors of the interpreter and of array libraries: check the arguments of a failed call against its schema.

Every entry, and every public callable's, leads here when anything is raised inside it. Successful calls are not slower:
an exception table costs no instruction. An error that a ``raise`` statement of the library raised passes, as does one
of the user's own code (a callback, ``__torch_function__``). In place of an error of the interpreter or of an array
library (``'NoneType' object has no attribute 'ndim'``), :func:`refuse` raises one that names operator, argument, the
expected and the given type.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from candelabra._annotations import Any, Final
from candelabra._codegen.fitting import misfit
from candelabra._device import open_instances
from candelabra._overrides import participates
from candelabra._records.schema import Parameter
from candelabra._tensor import Tensor
from candelabra.errors import OutOfMemoryError

PASSING: Final = (OSError, ImportError, EOFError, Warning, RecursionError, OutOfMemoryError)
"""Errors about something else than the arguments, or that say all: also compiled code raises OutOfMemoryError."""
OF_ARGUMENTS: Final = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, MemoryError)
"""Errors by which the interpreter and array libraries report arguments."""
KERNEL: Final = "raised by the kernel of"
"""The beginning of the note on errors of kernels."""


def refuse(
    title: str,
    parameters: Sequence[Parameter],
    error: Exception,
    values: tuple[Any, ...],
    first: int = 1,
    chosen: bool = False,
) -> None:
    """Raise an error that describes the arguments in place of ``error``, or return if that one already does.

    The arguments ``values`` may have their canonical form already. ``first`` is the position of the first one.
    With ``chosen``, the entry calls the overloads of a set, which describe their arguments themselves.
    """
    generic = getattr(error, "unexplained", False)
    plain = not generic and is_plain(error)
    if plain and (chosen or not names_another(title, error)):
        return
    if any(participates(type(value)) and not isinstance(value, Tensor) for value in values):
        return
    words = misfit(parameters, values, first)
    if words:
        raise TypeError(f"{title}(): {words}") from (error.__cause__ if generic else None if plain else error)
    if plain:
        return
    cause = error.__cause__ if generic else error
    raise _unexplained(title, parameters, cause, values) from cause


def names_another(title: str, error: Exception) -> bool:
    """Return whether an error is about the type of an argument of another operator, which this one calls."""
    inner = any(is_generated(entry) or is_guard(entry) for entry in _entries(error)[1:])
    return inner and type(error) is TypeError and not str(error).startswith(f"{title}(")


def _unexplained(
    title: str, parameters: Sequence[Parameter], error: BaseException | None, values: tuple[Any, ...]
) -> Exception:
    """Return the error for arguments that fit the schema, but not each other or the computation."""
    given = ", ".join(f"{p.name}={brief(value)}" for p, value in zip(parameters, values, strict=False))
    found: Any  # an exception with an attribute more
    if isinstance(error, (MemoryError, OutOfMemoryError)):
        found = OutOfMemoryError(f"{title}(): the memory does not suffice for {given}")
    elif isinstance(error, OverflowError):
        found = RuntimeError(f"{title}(): a number is too large: {given}")
    else:
        of_type = isinstance(error, (TypeError, AttributeError))
        named = (cls for cls in (ValueError, IndexError) if isinstance(error, cls))
        found = (TypeError if of_type else next(named, RuntimeError))(
            f"{title}(): cannot compute with these arguments: {given}"
        )
    found.unexplained = True  # the entry around this one names itself instead
    if error is not None and any(note.startswith(KERNEL) for note in getattr(error, "__notes__", ())):
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        found.add_note(f"the kernel's error: {text}")  # the array library's own words, which the message must not have
    return found  # type: ignore[no-any-return]


def brief(value: Any) -> str:
    """Return an argument in a few words: a tensor by dtype and shape, a number or string by its value."""
    if isinstance(value, Tensor):
        return f"{value.dtype.name}{list(value._payload.shape)}"
    if isinstance(value, (tuple, list)):
        items = [brief(item) for item in value[:8]] + ["..."] * (len(value) > 8)
        return f"[{', '.join(items)}]" if isinstance(value, list) else f"({', '.join(items)})"
    if value is None or isinstance(value, (bool, float, complex, str)):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"
    return type(value).__name__


# -- arguments as they were passed ------------------------------------------------------------------------------------
def passed_sizes(named: Any, positional: tuple[Any, ...]) -> Any:
    """Return the value of a variadic parameter that accepts one sequence: passed by name, one by one, or whole."""
    given = positional if named is None else named
    whole = isinstance(given, tuple) and len(given) == 1 and isinstance(given[0], (tuple, list))
    return given[0] if whole else given


def passed_arguments(parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call by the order of the parameters, with the defaults of those that are omitted."""
    values: list[Any] = []
    rest = args
    for p in parameters:
        if p.variadic:
            values.append(rest)
            rest = ()
        elif rest and not p.keyword_only and p.name not in kwargs:
            values.append(rest[0])
            rest = rest[1:]
        else:
            values.append(kwargs.get(p.name, p.default))
    return tuple(values)


# -- the origin of an error -------------------------------------------------------------------------------------------
def is_plain(error: Exception) -> bool:
    """Return whether an error passes: a ``raise`` statement of the library or the user's own code raised it."""
    if isinstance(error, PASSING):
        return True
    trace = _entries(error)
    last = trace[-1]
    if is_ours(last):
        return is_raised(last) and (not isinstance(error, AssertionError) or bool(error.args))  # no assert statement
    position = max(i for i, entry in enumerate(trace) if is_ours(entry))
    if any(note.startswith(KERNEL) for note in getattr(error, "__notes__", ())):
        if not isinstance(error, OF_ARGUMENTS):
            return True  # a driver's own error
        return is_generated(trace[position]) and is_raised(last) and type(error).__module__ == "builtins"
    return _package(trace[position]) == "candelabra"  # the core and nn call no array library, but user's functions


def _entries(error: Exception) -> list[TracebackType]:
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found


def _package(entry: TracebackType) -> str:
    return "candelabra" if is_generated(entry) else str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0]


def is_generated(entry: TracebackType) -> bool:
    """Return whether the frame runs generated code."""
    return entry.tb_frame.f_code.co_filename.startswith("<candelabra ")


def is_guard(entry: TracebackType) -> bool:
    """Return whether the frame is that of a public callable's handler."""
    return entry.tb_frame.f_code.co_qualname == "guarded.<locals>.call"


def is_ours(entry: TracebackType) -> bool:
    """Return whether the frame is of this library or of the package of a backend in use."""
    package = _package(entry)
    backends = {type(instance.backend).__module__.partition(".")[0] for instance in open_instances()}
    return package.partition("_")[0] == "candelabra" or package in backends


def is_raised(entry: TracebackType) -> bool:
    """Return whether the frame is at a ``raise`` statement: otherwise the interpreter raised."""
    from opcode import opmap

    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == opmap["RAISE_VARARGS"]
