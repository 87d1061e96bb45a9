"""Results and copies beyond the usual limits of implementations: grids of 65,535 blocks, buffers of 64 KiB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import candelabra as cd
import numpy as np
from candelabra.dtypes import ALL, BY_NAME, dtype

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.memory import bit_patterns
from candelabra_conformance.properties.refusals import refused_equally
from candelabra_conformance.properties.registry import Axes, Axis, device_property, operator_property
from candelabra_conformance.properties.value import agree, results
from candelabra_conformance.records import Record
from candelabra_conformance.samples.gather import declared_dtypes
from candelabra_conformance.transport import payload_to_host, to_device, to_host

KIB: Final = 1 << 10
LENGTHS: Final = (64 * KIB - 1, 64 * KIB + 3, 1024 * KIB + 3)
"""Numbers of bytes around the sizes of staging buffers, with odd tails; a multiple of the item size is copied."""
ROWS: Final = 65_539
"""A number of rows beyond a grid dimension of 65,535 blocks."""


def _declared(kind: str) -> Axes:
    def axes(context: Context, op: Record) -> Iterator[Axis]:
        able = {d.name for d in context.dtypes(op)}
        for name in declared_dtypes(op.name, kind):
            if name in able:
                yield Axis(BY_NAME[name], "", 2)

    return axes


@operator_property("sizes", _declared("sizes"), _declared("sizes"))
def sizes(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Results of more rows, elements or batches than an implementation computes at once are right to the last."""
    worst = None
    for sample in context.each_of(op, d, "sizes"):
        worst = max(worst or 0.0, agree(context, op, d, sample, CONTIGUOUS, results(context, op, sample, CONTIGUOUS)))
    if worst is None:
        raise NotApplicable("the device does not store the dtypes of these samples")
    return worst


@operator_property("bounds", _declared("bounds"), _declared("bounds"))
def bounds(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """An index out of bounds raises the reference's error, also in the last of many blocks, and nothing is written."""
    for sample in context.each_of(op, d, "bounds"):
        if not refused_equally(context, op, sample):
            raise Failure(f"the reference accepts this index ({sample.note})", sample, CONTIGUOUS)
    return None


def _stored(context: Context) -> Iterator[Axis]:
    for d in ALL:
        if d in context.instance.capabilities.storage:
            yield Axis(d, "", 1)


@device_property("long-copies", _stored)
def long_copies(context: Context, d: dtype, layout: str) -> None:
    """Copies of more than 64 KiB and 1 MiB with odd tails preserve all bits: to the device, within it, and back."""
    instance = context.instance
    for length in LENGTHS:
        values = bit_patterns(d, (length // d.itemsize,))
        buffer = bytearray(values.tobytes())
        payload = instance.backend.from_host(instance.index, memoryview(buffer), values.shape, d)
        buffer[:] = bytes(len(buffer))
        _hold(f"from_host() and to_host() of {length} bytes",
              payload_to_host(instance.backend, payload, values.shape, d), values)  # fmt: skip
        if instance.capabilities.mutable:
            written = instance.backend.copy_(instance.backend.empty(instance.index, values.shape, d), payload)
            _hold(f"the backend's copy_() of {length} bytes",
                  payload_to_host(instance.backend, written, values.shape, d), values)  # fmt: skip
        tensor = to_device(values, instance)
        for name, copied in COPIES.items():
            _hold(f"{name} of {length} bytes", to_host(copied(tensor)), values)
    rows = bit_patterns(d, (ROWS, 3))
    turned = to_device(rows, instance).transpose(0, 1)
    _hold(f"to_host() of {ROWS} transposed rows", to_host(turned), rows.T)
    _hold(f"contiguous() of {ROWS} transposed rows", to_host(turned.contiguous()), rows.T)
    _hold(f"contiguous() of {ROWS} rows", to_host(turned.contiguous().transpose(0, 1).contiguous()), rows)
    _hold(f"clone() of {ROWS} cut rows", to_host(to_device(rows, instance)[:, 1:].clone()), rows[:, 1:])


COPIES: Final[dict[str, Callable[[cd.Tensor], cd.Tensor]]] = {
    "clone()": lambda x: x.clone(),
    "copy_()": lambda x: cd.empty_like(x).copy_(x),
    "a copy without the first element": lambda x: cd.cat((x[:1], x[1:].clone())),
}
"""Copies within the device."""


def _hold(name: str, got: np.ndarray[tuple[int, ...], np.dtype[np.generic]], want: object) -> None:
    if not same(got, np.ascontiguousarray(want)):
        raise Failure(f"{name}: other bits come out")
