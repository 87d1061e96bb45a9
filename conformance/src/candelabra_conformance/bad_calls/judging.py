"""Run a bad call and judge it: does it return, raise a clear error, or leak an internal one?

An error is by the arguments if its class is one that PyTorch programs catch, if a ``raise`` statement of this
library raised it (and not the interpreter or an array library) or its class is this library's own, and if it names
no internal function. A call that raises must leave all tensors, the generators and the defaults as they were.
"""

from __future__ import annotations

import dis
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple

import candelabra as cd
from candelabra.library import Instance

from candelabra_conformance.bad_calls.calls import BadCall, function_named
from candelabra_conformance.calling import at, tensors_in
from candelabra_conformance.samples.sample import mapped
from candelabra_conformance.transport import to_device, to_host

RETURNED, RAISED, LEAKED, UNENDING = "returned", "raised", "leaked", "unending"
CLASSES: Final = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, AssertionError)
"""The classes of errors about the arguments, besides those of ``candelabra.errors``."""
INTERNAL: Final = re.compile(
    r"numpy|ufunc|(?<!expected np\.)ndarray|NoneType' object|has no attribute|unsupported operand|_payload|<lambda>"
    r"|object is not (callable|iterable|subscriptable|an iterator)|object cannot be interpreted|to unpack"
    r"|must be real number(?!, not complex)|not supported between|indices must be|out of bounds for axis"
    r"|invalid literal|only integer scalar arrays|could not be broadcast|cannot reshape array|maximum recursion"
    r"|\b_[a-z]\w*\(\)|C long|C int|math domain"
)
"""Words of the interpreter, of array libraries, and of internal functions."""
UNBOUND: Final = re.compile(
    r"^[a-z]\w*\(\) (got an unexpected keyword|missing \d+ required|takes .* positional arg|got multiple values)"
)
"""The interpreter's errors for arguments that do not fit the function's parameters."""
SECONDS: Final = 5.0
"""The time after which a call counts as one that does not end."""


class Outcome(NamedTuple):
    """What a call did."""

    verdict: str
    error: BaseException | None = None
    changed: str = ""
    """The state that the call changed although it raised, in words."""
    why: str = ""
    """Why an error counts as leaked."""


class NoEnd(BaseException):
    """A call that takes too long."""


def works(call: BadCall, instance: Instance) -> bool:
    """Return whether the call with the original arguments returns."""
    args, kwargs = prepared(call.base, instance)
    try:
        run(call, args, kwargs, instance)
    except Exception:
        return False
    return True


def judge(call: BadCall, instance: Instance) -> Outcome:
    """Run a bad call on a device."""
    args, kwargs = prepared((call.args, call.kwargs), instance)
    before = state_of(args, kwargs)
    try:
        with limited(SECONDS):
            run(call, args, kwargs, instance)
    except NoEnd as error:
        return Outcome(UNENDING, error)
    except Exception as error:
        changed = difference(before, state_of(args, kwargs))
        why = leaking(error, call.name)
        return Outcome(LEAKED if why else RAISED, error, changed, why)
    return Outcome(RETURNED)


def prepared(arguments: tuple[Any, Any], instance: Instance) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments on the device."""
    args, kwargs = (
        mapped(list(arguments[0]), lambda a: to_device(a, instance)),
        mapped(dict(arguments[1]), lambda a: to_device(a, instance)),
    )
    return at(args, instance.device), at(kwargs, instance.device)


def run(call: BadCall, args: list[Any], kwargs: dict[str, Any], instance: Instance) -> Any:
    """Call the public function, with warnings off."""
    function = function_named(call.name)
    with warnings.catch_warnings(), instance.device:
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise :class:`NoEnd` in the main thread after a time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise NoEnd

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- errors -----------------------------------------------------------------------------------------------------------
def leaking(error: BaseException, name: str) -> str:
    """Return why an error of a call of a public function is not by the arguments, or ""."""
    cls = type(error)
    if cls not in CLASSES and cls.__module__ != "candelabra.errors":
        return f"its class is {cls.__module__}.{cls.__qualname__}"
    if cls is AssertionError and not error.args:
        return "an assert statement failed"
    if cls is TypeError and UNBOUND.search(str(error)):
        return ""
    found = INTERNAL.search(str(error).replace(f"{name.rpartition('.')[2]}()", ""))
    if found:
        return f"its text contains {found[0]!r}"
    if cls.__module__ == "candelabra.errors":
        return ""  # only this library raises it, also in C
    last = last_frame(error)
    return (
        "" if raised_here(last) else f"{last.tb_frame.f_code.co_filename.rpartition('/')[2]}:{last.tb_lineno} raised it"
    )


def last_frame(error: BaseException) -> TracebackType:
    """Return the innermost entry of the traceback."""
    last = error.__traceback__
    assert last is not None
    while last.tb_next is not None:
        last = last.tb_next
    return last


def raised_here(last: TracebackType) -> bool:
    """Return whether a ``raise`` statement of a library function raised, or the call itself does not fit."""
    code = last.tb_frame.f_code
    module = str(last.tb_frame.f_globals.get("__name__", ""))
    ours = module.partition(".")[0].startswith("candelabra") or code.co_filename.startswith("<candelabra")
    return ours and dis.opname[code.co_code[last.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


# -- state ------------------------------------------------------------------------------------------------------------
def state_of(args: Any, kwargs: Any) -> dict[str, Any]:
    """Return a copy of everything that a call that raises must not change."""
    state: dict[str, Any] = {
        "the default dtype": cd.get_default_dtype(), "the default device": str(cd.get_default_device()),
        "grad mode": cd.is_grad_enabled(), "the default generator": cd.default_generator.get_state().tolist(),
    }  # fmt: skip
    for position, tensor in enumerate(tensors_in([args, kwargs])):
        state[f"tensor {position}"] = (
            to_host(tensor).tobytes(), tuple(tensor.shape), tensor.dtype.name, tensor.requires_grad,
            tensor.grad is None,
        )  # fmt: skip
    return state


def difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the names of the entries that differ between two states."""
    return ", ".join(name for name, value in before.items() if after.get(name) != value)
