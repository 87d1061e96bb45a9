"""Faults of kernels over rows: an optimizer's step that writes too little, to the wrong row, or by wrong options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra.backend import Backend
from candelabra.library import OPERATORS

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import Array, Mutant, array_of, listed
from candelabra_conformance.mutants.storage import overwrite
from candelabra_conformance.references import registry as references

FAMILY: Final = __name__.rpartition(".")[2]
LAUNCHED: Final = 64
"""The number of rows of one launch."""
Columns = list[Sequence[Image]]
Step = Callable[[Columns, tuple[Any, ...]], None]
Fault = Callable[[Mirror, "MirrorRowKernel", Columns, tuple[Any, ...]], None]


class MirrorRowKernel:
    """A correct step of all rows on the mirror, by the operator's reference."""

    def __init__(self, mirror: Mirror, operator: str) -> None:
        references.load()
        self.mirror, self.operator = mirror, operator
        record = OPERATORS[operator]
        self.names = [p.name for p in record.schema.tensors]
        self.written = [self.names.index(n) if n in self.names else 0 for n in record.schema.outputs]
        self.options = [p.name for p in record.schema.parameters[len(self.names) :]]

    def values(self, row: Sequence[Image], options: tuple[Any, ...]) -> dict[int, Array]:
        """Return the new values of a row's tensors, by place."""
        if len({image.shape for image in row}) > 1:
            raise ValueError("the tensors of a row have several shapes")
        arrays = [array_of(self.mirror, image) for image in row]
        result: Any = references.REFERENCES[self.operator](*[a.astype(np.float64) for a in arrays], *options)
        several = result if isinstance(result, tuple) else (result,)
        return {p: np.asarray(v, arrays[p].dtype) for p, v in zip(self.written, several, strict=True)}

    def write(self, row: Sequence[Image], values: dict[int, Array]) -> None:
        """Write new values into a row's tensors."""
        for place, array in values.items():
            overwrite(self.mirror, row[place], array)

    def run(self, columns: Columns, options: tuple[Any, ...]) -> None:
        """Do the step of every row."""
        for row in zip(*columns, strict=True):
            self.write(row, self.values(row, options))


def _over_rows(words: str, operators: str, caught_by: str = "rows/*") -> Callable[[Fault], Fault]:
    """List one mutant for each operator."""

    def mark(fault: Fault) -> Fault:
        for operator in operators.split():
            name = f"{operator}-{fault.__name__.strip('_')}".replace("_", "-")
            cases = tuple(f"{operator}/{pattern}" for pattern in caught_by.split())
            make = partial(_broken, name, operator, fault)
            listed(Mutant(name, f"In {operator} over rows: {words}", make, (operator,), cases, FAMILY))
        return fault

    return mark


def _broken(name: str, operator: str, fault: Fault) -> Backend:
    mirror = Mirror(name.replace("-", "_"))
    right = MirrorRowKernel(mirror, operator)
    count = len(right.names)
    mirror.table[operator + "_"] = lambda *args: fault(mirror, right, list(args[:count]), args[count:])
    return mirror


ALL: Final = "sgd_step momentum_step adam_step amsgrad_step"


@_over_rows("Nothing is written.", ALL, "rows/* training/*")
def _writes_nothing(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    for row in zip(*columns, strict=True):
        right.values(row, options)


@_over_rows("Only the first row is written.", ALL)
def _writes_the_first_row(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    right.run([column[:1] for column in columns], options)


@_over_rows("The rows beyond the first 64 are not written.", "sgd_step adam_step")
def _launches_once(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    right.run([column[:LAUNCHED] for column in columns], options)


@_over_rows("A row gets the values of the next one of its shape.", ALL)
def _mixes_up_rows(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    rows = list(zip(*columns, strict=True))
    values = [right.values(row, options) for row in rows]
    for number, row in enumerate(rows):
        following = (n for n in (*range(number + 1, len(rows)), *range(number)) if rows[n][0].shape == row[0].shape)
        right.write(row, values[next(following, number)])


@_over_rows("All rows have the size of the first: the end of a longer one is not written.", "sgd_step momentum_step")
def _takes_the_first_rows_size(
    mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]
) -> None:
    size = int(np.prod(columns[0][0].shape))
    for row in zip(*columns, strict=True):
        values = right.values(row, options)
        for place, array in values.items():
            array.reshape(-1)[size:] = array_of(mirror, row[place]).reshape(-1)[size:]
        right.write(row, values)


@_over_rows("Only the parameter is written, not the optimizer's state.", "momentum_step adam_step amsgrad_step")
def _forgets_the_state(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    for row in zip(*columns, strict=True):
        right.write(row, {0: right.values(row, options)[0]})


@_over_rows("The gradient is multiplied by the learning rate in its own memory.", "sgd_step adam_step")
def _scales_the_gradient(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    right.run(columns, options)
    for gradient in columns[1]:
        array = array_of(mirror, gradient)
        overwrite(mirror, gradient, (array * options[right.options.index("lr")]).astype(array.dtype))


@_over_rows("The sign of maximize is ignored.", "sgd_step momentum_step adam_step")
def _always_minimizes(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    place = right.options.index("maximize")
    right.run(columns, (*options[:place], False, *options[place + 1 :]))


@_over_rows("The weights do not decay.", "sgd_step momentum_step adam_step amsgrad_step")
def _never_decays(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    place = right.options.index("weight_decay")
    right.run(columns, (*options[:place], 0.0, *options[place + 1 :]))


@_over_rows("The step goes uphill.", "sgd_step adam_step", "rows/* training/*")
def _goes_uphill(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    place = right.options.index("maximize")
    right.run(columns, (*options[:place], not options[place], *options[place + 1 :]))


@_over_rows("Rows without elements end the step.", "sgd_step")
def _stops_at_an_empty_row(mirror: Mirror, right: MirrorRowKernel, columns: Columns, options: tuple[Any, ...]) -> None:
    for row in zip(*columns, strict=True):
        if 0 in row[0].shape:
            return
        right.write(row, right.values(row, options))
