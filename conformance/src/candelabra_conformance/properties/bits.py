"""Operators that move elements without computing preserve all their bits, also the sign and the payload of NaN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.perturbation import with_operands
from candelabra_conformance.properties.axes import usual
from candelabra_conformance.properties.effects import same
from candelabra_conformance.properties.memory import bit_patterns
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.properties.value import results
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import ORDINARY, Sample
from candelabra_conformance.transport import Array

MOVING: Final = frozenset({
    "cat", "clone", "flip", "gather", "index", "index_select", "masked_select", "roll", "scatter_src", "where",
})  # fmt: skip
"""The operators whose results consist of elements of their operands."""
SAMPLES: Final = 4
"""The number of ordinary samples that are tried."""


def _floating(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    if op.name in MOVING:
        for d in context.dtypes(op):
            if d.is_floating_point:
                yield Axis(d, "", 2 if usual(context, d) else 3)


@operator_property("bits", _floating)
def bits(context: Context, op: Record, d: dtype, layout: str) -> None:
    """Results have the bits of the operands, for NaN of every sign and payload, subnormals and any other bits."""
    ordinary = [s for s in context.samples(op, d) if s.kind == ORDINARY and s.of is None and not _has_number(s)]
    for found in ordinary[:SAMPLES]:
        sample = with_operands(op, found, _any_bits)
        got, want = results(context, op, sample, CONTIGUOUS), context.oracle.own(op, sample)
        for values, due in zip(got, want, strict=True):
            if not same(values, np.ascontiguousarray(due).reshape(due.shape)):
                raise Failure("an element has other bits than in the operand that it is from", sample, CONTIGUOUS)


def _has_number(sample: Sample) -> bool:
    """Return whether a Python number takes the place of a tensor, with which the elements may be promoted."""
    return any(type(value) in (float, complex) for value in sample.args)


def _any_bits(array: Array) -> Array:
    """Return an array of arbitrary bits in place of one of floats, and any other array itself."""
    return array if array.dtype.kind in "biu" else bit_patterns(device_dtype(array.dtype), array.shape)
