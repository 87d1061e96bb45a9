"""Faults of launches: a kernel that serves the first elements, rows or inputs only, or forgets the rest of a division
into blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from candelabra.library import Operator

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, array_of, payload_of
from candelabra_conformance.mutants.systematic.parameters import operands_of
from candelabra_conformance.mutants.systematic.results import elements
from candelabra_conformance.mutants.systematic.switch import (
    Change,
    Fault,
    Reached,
    Switch,
    another,
    of_arguments,
    of_result,
    written_with,
)

BLOCKS: Final = (64, 256)
"""Work-groups and tiles."""
GRID: Final = 65_535
"""The largest number of blocks along a grid's second and third dim."""
VECTOR: Final = 4
"""The width of vectorised loads."""


def of_blocks(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield the faults of a kernel that divides its results and inputs into blocks."""
    for count in (*BLOCKS, GRID + 1):
        large = count > GRID
        results = of_result(switch, _beyond(count))
        inputs = of_arguments(switch, _cut(count), _cut(count, repeated=True))
        yield Fault(name, f"elements beyond {count:,}", results, _more(count), of_family=large)
        if operands_of(record):
            yield Fault(name, f"inputs beyond {count:,}", inputs, _more_inputs(count), of_family=large)
    rows = of_result(switch, _rows_beyond(GRID))
    yield Fault(name, f"rows beyond {GRID:,}", rows, _more_rows(GRID), only_if_reached=True, of_family=True)
    for block in (VECTOR, *BLOCKS):
        yield Fault(name, f"tail of {block}", of_result(switch, _tail(block)), _with_tail(block))


def of_written_blocks(name: str, switch: Switch) -> Iterator[Fault]:
    """Yield the same faults of an in-place kernel's target."""
    for count in (*BLOCKS, GRID + 1):
        change = written_with(switch, _beyond(count))
        yield Fault(name, f"elements beyond {count:,}", change, _more(count), of_family=count > GRID)
    for block in (VECTOR, *BLOCKS):
        yield Fault(name, f"tail of {block}", written_with(switch, _tail(block)), _with_tail(block))


def _more(count: int) -> Reached:
    return lambda call: any(elements(out.shape) > count for out in call.results)


def _more_inputs(count: int) -> Reached:
    return lambda call: any(elements(image.shape) > count for image in call.images)


def _more_rows(count: int) -> Reached:
    return lambda call: any(
        len(o.shape) > 1 and elements(o.shape) and elements(o.shape[:-1]) > count for o in call.results
    )


def _with_tail(block: int) -> Reached:
    return lambda call: any(elements(out.shape) > block and elements(out.shape) % block for out in call.results)


def _beyond(count: int) -> Change:
    def change(array: Array) -> Array:
        flat = array.reshape(-1)
        flat[count:] = another(flat[count:])
        return array

    return change


def _rows_beyond(count: int) -> Change:
    def change(array: Array) -> Array:
        if array.ndim > 1 and array.size:
            rows = array.reshape(-1, array.shape[-1])
            rows[count:] = another(rows[count:])
        return array

    return change


def _tail(block: int) -> Change:
    def change(array: Array) -> Array:
        rest = array.size % block
        if array.size > block and rest:
            flat = array.reshape(-1)
            flat[-rest:] = another(flat[-rest:])
        return array

    return change


def _cut(count: int, repeated: bool = False) -> Callable[[Mirror, Image], Image]:
    """Return a function that sets all elements of a payload but the first to 0, or to the very first, which is valid
    where 0 is not."""

    def change(mirror: Mirror, image: Image) -> Image:
        if elements(image.shape) <= count:
            return image
        array = array_of(mirror, image)
        array.reshape(-1)[count:] = array.reshape(-1)[0] if repeated else np.zeros((), array.dtype)
        return payload_of(mirror, array, image.index)

    return change
