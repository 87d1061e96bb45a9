"""Write a failure as a program of about ten lines that needs only the core and the backend.

``reproducer`` writes the program: the tensors as literals that are exact to the bit, the views that produce their
layouts, the call, the expected value, and an assertion with the largest permitted error. A failure on large arrays is
first reproduced on smaller ones (:mod:`candelabra_conformance.shrinking`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from candelabra.library import EVERY_SIZE, OWN_KERNELS, OverloadSet, state

from candelabra_conformance import literals
from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.program import Layout, ReproducerProgram, argument_texts, spelled
from candelabra_conformance.program_checks import VALUES, WRITERS, Written
from candelabra_conformance.records import CallableRecord, Record, UnknownNameError, arguments_of, everything_named
from candelabra_conformance.samples.sample import HERE, Sample, arrays
from candelabra_conformance.transport import Array


def reproducer(
    operator: str | Record,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: Any,
    property: str = "value",
    layout: Layout = CONTIGUOUS,
    expected: Any = None,
    allowed: Any = None,
    seed: int | None = None,
    check: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """Return a program that shows what is wrong with ``operator(*args, **kwargs)`` on a device.

    ``operator`` is a record or its name, or the name of a public callable.

    Arguments are those of a sample: NumPy arrays represent tensors with a ``layout`` (a name, or strides and offset by
    array), and ``HERE`` represents the device. ``expected`` depends on ``property``: for ``"value"``, ``"special"``,
    ``"inplace"``, ``"out"`` and ``"random"`` the values (an array, or a tuple of them for several outputs; None:
    computed now, on the reference device), for ``"gradient"`` the gradients of the sum of the outputs, one per floating
    array, for ``"gradient2"`` the gradients of their sum, for ``"errors"`` and ``"unclaimed"`` the expected exception
    or its class, for ``"result"`` a list of (dtype, shape). ``"inputs"``, ``"aliasing"``, ``"determinism"`` and
    ``"threads"`` need none. ``allowed`` is the largest permitted error, a number or an array per output; the default is
    a few units in the last place. ``seed`` is set first. The lines of ``check``, if given, replace the property's own
    after the call, whose result is ``got``; ``inputs`` is a list of the tensors.

    While the fault exists, the program raises AssertionError with the difference. Raises ``ValueError`` for an unknown
    property, unless ``check`` is given, and ``TypeError`` for arguments without a literal.
    """
    record = record_named(operator) if isinstance(operator, str) else operator
    program = ReproducerProgram(str(device), layout)
    arguments = argument_texts(program, record, args, on_the_device(record, args, kwargs or {}))
    call = spelled(record, arguments)
    writer = WRITERS.get(property)
    if check is not None:
        lines = [f"inputs = [{', '.join(program.names.values())}]", f"got = {call}", *check]
    elif writer is None:
        raise ValueError(
            f"reproducer(): property must be one of {', '.join(WRITERS)}, or check must be given, got {property!r}"
        )
    else:
        if expected is None and property in VALUES:
            expected, allowed = answered(record, args, kwargs or {}, allowed)
        lines = writer(Written(record, call, arguments, program, expected, allowed))
    return composed(program, f"{record.name}: {property}", lines, seed, note)


def composed(program: ReproducerProgram, title: str, lines: Sequence[str], seed: int | None, note: str) -> str:
    """Return the text of a program: a title, its imports, its tensors, and ``lines``.

    It begins with the current mode of :func:`candelabra.library.own_kernels` or ``serve_every_size``.
    """
    first = [f"cd.manual_seed({seed})"] if seed is not None else []
    modes = {OWN_KERNELS: "own_kernels", EVERY_SIZE: "serve_every_size"}
    mode = next((f"cd.library.{name}().__enter__()" for bit, name in modes.items() if state.bits & bit), None)
    text = "\n".join([*([mode] if mode else []), f"device = {program.device!r}", *program.setup, *first, *lines])
    layout = f", {program.layout}" if isinstance(program.layout, str) and program.layout != CONTIGUOUS else ""
    about = [f"# {title}{layout}, on {program.device}", *(f"# {line}" for line in note.splitlines())]
    imports = ["import candelabra as cd", *(["import candelabra.library"] if mode else [])]
    return "\n".join([*about, *literals.imports(text), *imports, "", text, ""])


def record_named(name: str) -> Record:
    """Return the record of an operator or a public callable. Raises ``UnknownNameError`` for any other name."""
    record = everything_named(name)[0]
    if isinstance(record, OverloadSet):
        raise UnknownNameError(f"{name!r} is the name of several operators: {record!r}")
    return record


def on_the_device(record: Record, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keywords, with the device for a public callable that would otherwise create its tensor elsewhere."""
    given = Sample(tuple(args), kwargs)
    if not isinstance(record, CallableRecord) or record.schema.named("device") is None or tuple(arrays(given.args)):
        return kwargs
    return kwargs if "device" in arguments_of(record, given) else {**kwargs, "device": HERE}


def answered(
    record: Record, args: Sequence[Any], kwargs: Mapping[str, Any], allowed: Any
) -> tuple[tuple[Array, ...], Any]:
    """Return the reference device's values, computed in the widest precision, in the expected dtype, and the permitted
    error."""
    from candelabra_conformance.shadowing.answer import answer

    found = answer(record, args, kwargs)
    return found.rounded(), found.allowed() if allowed is None else allowed
