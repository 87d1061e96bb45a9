"""``vmap`` of operators: one call for many examples gives each of them the result of a call of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra import Tensor, vmap
from candelabra.dtypes import dtype
from candelabra.library import Operator
from candelabra.utils._pytree import tree_map

from candelabra_conformance.calling import called, split
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree, results
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.transport import Array, to_device

EXAMPLES: Final = 3
MOST: Final = 20_000
"""The number of elements of a sample beyond which it is not batched."""


def is_batched(op: Operator[..., Any]) -> bool:
    """Return whether ``vmap`` serves an operator: it takes tensors, draws nothing, and its shapes need no values."""
    return bool(op.schema.tensors) and not (op.data_dependent or op.random)


@operator_property("vmap", some(2, when=is_batched))
def batched(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """``vmap`` over all arrays of a sample, and over each of them, gives every example its own values."""
    worst = None
    for sample in context.each(op, d, layout):
        given = _arrays(sample)
        if not given or sum(array.size for array in given) > MOST:
            continue
        for marked in _batched_sets(len(given)):
            chosen = [_chosen(sample, example, marked) for example in _examples(sample)]
            try:
                error = _agreed(context, op, d, chosen, marked, layout)
            except Exception:
                # Single calls only show whose fault an error is, and they take most of the time.
                defined = [one if one is sample or _is_defined(context, op, one, layout) else sample for one in chosen]
                if all(one is other for one, other in zip(defined, chosen, strict=True)):
                    raise
                error = _agreed(context, op, d, defined, marked, layout)
            worst = max(worst or 0.0, error)
    return worst


def _agreed(
    context: Context, op: Operator[..., Any], d: dtype, chosen: list[Sample], marked: frozenset[int], layout: str
) -> float:
    """Compare the results of one call for all examples with those of single calls. Return the largest error in ULP."""
    worst = 0.0
    found = _at_once(context, op, chosen, marked, layout)
    for number, one in enumerate(chosen):
        result = tree_map(lambda t, number=number: t.select(0, number), found)
        try:
            error = agree(context, op, d, one, layout, split(one, result, context.reference)[0])
        except Failure as failure:
            raise Failure(
                f"example {number} of {EXAMPLES}, arrays {sorted(marked)} batched: {failure}", one, layout,
                **failure.details,
            ) from None  # fmt: skip
        worst = max(worst, error)
    return worst


def _arrays(sample: Sample) -> list[Array]:
    return list(arrays((sample.args, dict(sample.kwargs))))


def _batched_sets(count: int) -> Iterator[frozenset[int]]:
    """Yield the sets of arrays that are batched: all of them, and each alone."""
    yield frozenset(range(count))
    if count > 1:
        for position in range(count):
            yield frozenset((position,))


def _examples(sample: Sample) -> list[Sample]:
    """Return the sample and variants of it with other floating values, for which the operator may be undefined."""
    return [sample, *(with_arrays(sample, change) for change in (_scaled, _reversed))]


def _is_defined(context: Context, op: Operator[..., Any], sample: Sample, layout: str) -> bool:
    """Return whether a single call has the right result: a variant may be a singular matrix, or out of a range."""
    try:
        agree(context, op, context.main_dtypes(op)[0], sample, layout, results(context, op, sample, layout))
    except Exception:  # any error of the operator, and results that are not determined
        return False
    return True


def _scaled(array: Array) -> Array:
    return np.asarray(array * 0.75, array.dtype) if array.dtype.kind in "fc" else array


def _reversed(array: Array) -> Array:
    return array.reshape(-1)[::-1].reshape(array.shape).copy() if array.dtype.kind in "fc" else array


def _chosen(sample: Sample, example: Sample, marked: frozenset[int]) -> Sample:
    """Return an example whose arrays outside of ``marked`` are those of the sample; the sample if all arrays are.

    The oracle computes the answer to a sample once.
    """
    own = [e if i in marked else s for i, (s, e) in enumerate(zip(_arrays(sample), _arrays(example), strict=True))]
    if all(one is other for one, other in zip(own, _arrays(sample), strict=True)):
        return sample
    rest = iter(own)
    args, kwargs = mapped((sample.args, dict(sample.kwargs)), lambda _: next(rest))
    return replace(sample, args=args, kwargs=kwargs)


def _at_once(
    context: Context, op: Operator[..., Any], examples: list[Sample], marked: frozenset[int], layout: str
) -> Any:
    """Return the results of one call for all examples, which are along the first dim."""
    columns = list(zip(*[_arrays(example) for example in examples], strict=True))
    dims = tuple([0 if i in marked else None for i in range(len(columns))])
    given = [
        to_device(np.stack(column) if i in marked else column[0], context.instance) for i, column in enumerate(columns)
    ]

    def one(*values: Tensor) -> Any:
        rest = iter(values)
        args, kwargs = mapped((examples[0].args, dict(examples[0].kwargs)), lambda _: next(rest))
        return called(op, args, kwargs, context.instance)

    context.current = (examples[0], layout)
    return vmap(one, dims, randomness="same")(*given)
