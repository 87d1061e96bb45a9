"""One in-place operator over many tensors: an optimizer's step over all parameters.

A *row* has one tensor for each tensor of the record, such as a parameter, its gradient and its state. The form over
rows, ``op.over_rows(rows, *options)``, changes the same tensors of every row in place. Its dispatch key is the OR of
all tensors' keys and the mode bits, as for any call, and the numbered steps of :func:`resolution` find the function
that serves it, once for each key.

A backend's kernel has the operator's name with ``_`` at its end. For each tensor of the record it takes a sequence of
arrays, one for each row, then the options, and it writes the arguments that the record's outputs are named after. So
it may serve all rows by one launch. Without such a kernel the record's in-place body runs for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple
from candelabra._device import instance_of_key
from candelabra._dispatch.deferring import deferred_rows
from candelabra._dispatch.failure import fail
from candelabra._dispatch.tracing import RunTimeFloat, reporting
from candelabra._keys import (
    AUTOGRAD,
    DEFERRED,
    DEVICE_SHIFT,
    FUNCTION_MODE,
    LAYER_MASK,
    LAYOUT_MASK,
    NO_GRAD,
    NO_OVERRIDE,
    OVERRIDE,
    PACK,
    TRACING,
    VIEW,
    state,
)
from candelabra._serving import kernel_for
from candelabra.dtypes import BY_BIT, DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._records.record import Operator

Row = tuple[Any, ...]
NUMBERS: Final = frozenset((bool, int, float, RunTimeFloat))
"""The types of a kernel's options. If one is a tensor, the operators of the body take it."""
payload_of: Final = attrgetter("_payload")


class RowResolution(NamedTuple):
    """The function that serves a key, ``function(rows, options)``, and the route of the step that found it."""

    function: Callable[[Sequence[Row], tuple[Any, ...]], None]
    route: str


def over_rows(op: Operator[..., Any]) -> Callable[..., None]:
    """Return the form of an operator over rows: ``form(rows, *options)``."""
    table, one_by_one = op.rows_table, row_by_row(op)

    def call(rows: Sequence[Row], *options: Any) -> None:
        if not NUMBERS.issuperset(map(type, options)):
            one_by_one(rows, options)
            return
        key = state.bits
        for row in rows:
            for t in row:
                key |= t._keys
        if rows:
            table[key](rows, options)

    return call


def has_one_kernel(op: Operator[..., Any], tensors: Iterable[Any]) -> bool:
    """Return whether one kernel serves the form over rows, for rows of these tensors and others of their kinds."""
    key = state.bits
    for t in tensors:
        key |= t._keys
    return resolution(op, key).route == "native"


def resolution(op: Operator[..., Any], key: int) -> RowResolution:
    """Return the function that serves the form over rows for ``key``."""
    # 0. A block of batching(): the calls that it has collected may read what this one writes.
    if key & DEFERRED:
        return RowResolution(deferred_rows(op), "deferred")
    # 1. Tensors of several devices or dtypes, or views or sparse tensors among them: rows of one key each.
    devices = key >> DEVICE_SHIFT
    d = BY_BIT.get(key & DTYPE_MASK)
    if devices & (devices - 1) or d is None or key & (VIEW | LAYOUT_MASK):
        return RowResolution(by_key(op), "grouped")
    # 2. A functionality layer, subclasses of Tensor, and calls that are recorded, see the operators of the body.
    overridden = key & (OVERRIDE | NO_OVERRIDE) == OVERRIDE or key & (FUNCTION_MODE | LAYER_MASK | PACK)
    if not overridden and (key & NO_GRAD or not key & AUTOGRAD):
        # 3. The backend's kernel.
        instance = instance_of_key(key)
        kernel = None if instance.immutable else kernel_for(instance, op.name + "_", d, key)
        if kernel is not None:
            if key & TRACING and not instance.capabilities.virtual:
                kernel = reporting(op, "rows", kernel, instance)
            return RowResolution(by_kernel(op, kernel), "native")
    # 4. The in-place body for each row.
    return RowResolution(row_by_row(op), "composite")


def by_key(op: Operator[..., Any]) -> Callable[[Sequence[Row], tuple[Any, ...]], None]:
    """Return a function that calls the form once for the rows of each key; a row with views is served by the body."""
    table, one_by_one = op.rows_table, row_by_row(op)

    def call(rows: Sequence[Row], options: tuple[Any, ...]) -> None:
        groups: dict[int, list[Row]] = {}
        for row in rows:
            key = state.bits
            for t in row:
                key |= t._keys
            groups.setdefault(key, []).append(row)
        for key, same_key in groups.items():
            if len(groups) == 1:  # each row itself has a view, a sparse gradient, two dtypes or two devices
                one_by_one(same_key, options)
            else:
                table[key](same_key, options)

    return call


def row_by_row(op: Operator[..., Any]) -> Callable[[Sequence[Row], tuple[Any, ...]], None]:
    """Return a function that runs the in-place body for each row."""
    body = op.inplace_body
    assert body is not None

    def call(rows: Sequence[Row], options: tuple[Any, ...]) -> None:
        for row in rows:
            body(*row, *options)

    return call


def by_kernel(op: Operator[..., Any], kernel: Callable[..., Any]) -> Callable[[Sequence[Row], tuple[Any, ...]], None]:
    """Return a function that calls a kernel once for all rows and increments the versions of the written tensors.

    If the kernel raises, the record's rule describes the first row whose shapes differ.
    """
    outputs = op.schema.outputs
    written = [i for i, p in enumerate(op.schema.parameters) if not i or p.name in outputs]
    one_by_one = row_by_row(op)

    def call(rows: Sequence[Row], options: tuple[Any, ...]) -> None:
        columns = list(zip(*rows, strict=True))
        payloads = []
        for column in columns:
            payloads.append([*map(payload_of, column)])
        try:
            served = kernel(*payloads, *options)
        except Exception as error:
            wrong = (row for row in rows if len({t._payload.shape for t in row}) > 1)
            fail(op, error, (*next(wrong, rows[0]), *options))
        if served is NotImplemented:
            one_by_one(rows, options)
            return
        for i in written:
            for t in columns[i]:
                t._counter[0] += 1

    return call
