"""``vmap`` of operators: one call for many examples gives each of them the result of a call of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
from candelabra import Tensor, vmap
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator
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


def reads_strides(op: Operator[..., Any]) -> bool:
    """Return whether the result depends on the strides of the input, which differ between an example and a copy."""
    return op.gather is not None or op.schema.named("storage_offset") is not None


@operator_property("vmap", some(2, when=is_batched))
def batched(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """``vmap`` over all arrays of a sample, and over each of them, gives every example its own values.

    The examples are along each dim of the arrays in turn; along the first one for a view of the memory itself.
    """
    worst = None
    tried: set[tuple[frozenset[int], int, int]] = set()
    for sample in context.each(op, d, layout):
        values = _arrays(sample)
        if not values or sum(array.size for array in values) > MOST:
            continue
        for marked in _batched_sets(len(values)):
            chosen = [_chosen(sample, example, marked) for example in _examples(sample)]
            for dim in [0] if reads_strides(op) else _dims(values, marked, tried):
                at_once = _AtOnce(context, op, chosen, marked, dim, layout)
                try:
                    error = at_once.agreed(d)
                except Exception:
                    # Single calls only show whose fault an error is, and they take most of the time.
                    if dim and at_once.refuses_an_example():
                        continue  # such as a view of another shape of strided memory
                    defined = [
                        one if one is sample or _is_defined(context, op, one, layout) else sample for one in chosen
                    ]
                    if all(one is other for one, other in zip(defined, chosen, strict=True)):
                        raise
                    error = _AtOnce(context, op, defined, marked, dim, layout).agreed(d)
                worst = max(worst or 0.0, error)
    return worst


def _dims(values: list[Array], marked: frozenset[int], tried: set[tuple[frozenset[int], int, int]]) -> list[int]:
    """Return the dims along which the examples of one sample are: the first, and those not tried with its rank yet.

    An array of a smaller rank has them along its last dim.
    """
    rank = max(values[i].ndim for i in marked)
    further = [dim for dim in range(1, rank + 1) if (marked, rank, dim) not in tried]
    tried.update((marked, rank, dim) for dim in further)
    return [0, *further]


def _checked(
    context: Context, op: Operator[..., Any], d: dtype, one: Sample, result: Any, name: str, layout: str
) -> float:
    """Return the error of the result for one example. The failure names it."""
    try:
        return agree(context, op, d, one, layout, split(one, result, context.reference)[0])
    except Failure as failure:
        raise Failure(f"{name}: {failure}", one, layout, **failure.details) from None


# -- nested and random forms ------------------------------------------------------------------------------------------
def is_selected(op: Operator[..., Any]) -> bool:
    """Return whether ``vmap`` in ``vmap`` is checked: for operators with a rule, and for the first of each module."""
    return is_batched(op) and (op.batching is not None or op is _first_of(op.declared_in))


@cache
def _first_of(module: str) -> Operator[..., Any] | None:
    """Return the first operator of a module that ``vmap`` serves."""
    found = [op for _, op in sorted(OPERATORS.items()) if op.declared_in == module and is_batched(op)]
    return found[0] if found else None


@operator_property("vmap_nested", some(2, when=is_selected))
def nested(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """``vmap`` in ``vmap`` gives every pair of examples its own values, for one sample.

    All arrays are batched by both; or the arrays are batched in turn by one of them.
    """
    for sample in context.each(op, d, layout):
        given = _arrays(sample)
        if not given or not all(array.ndim for array in given) or sum(array.size for array in given) > MOST // 10:
            continue
        examples = _examples(sample)
        both = frozenset(range(len(given)))
        even = frozenset(range(0, len(given), 2))
        errors = [_of_pairs(context, op, d, examples, both, both, layout)]
        if len(given) > 1:
            errors.append(_of_pairs(context, op, d, examples, even, both - even, layout))
        done = [error for error in errors if error is not None]
        if done:
            return max(done)
    return None


def _of_pairs(
    context: Context,
    op: Operator[..., Any],
    d: dtype,
    examples: list[Sample],
    outer: frozenset[int],
    inner: frozenset[int],
    layout: str,
) -> float | None:
    """Compare the results for all pairs of an example of the outer ``vmap`` and one of the inner."""

    def pair(i: int, j: int) -> Sample:
        columns = [_arrays(example) for example in examples]
        own = iter(
            [
                columns[((i if n in outer else 0) + (j if n in inner else 0)) % EXAMPLES][n]
                for n in range(len(columns[0]))
            ]
        )
        args, kwargs = mapped((examples[0].args, dict(examples[0].kwargs)), lambda _: next(own))
        return replace(examples[0], args=args, kwargs=kwargs)

    pairs = [[pair(i, j) for j in range(EXAMPLES)] for i in range(EXAMPLES)]
    try:
        return _agreed_in_pairs(context, op, d, pairs, outer, inner, layout)
    except Exception:  # as above: single calls show whose fault it is
        if all(_is_defined(context, op, one, layout) for row in pairs for one in row):
            raise
        return None


def _agreed_in_pairs(
    context: Context,
    op: Operator[..., Any],
    d: dtype,
    pairs: list[list[Sample]],
    outer: frozenset[int],
    inner: frozenset[int],
    layout: str,
) -> float:
    """Compare the results of ``vmap`` in ``vmap`` with those of single calls. Return the largest error in ULP."""
    first = pairs[0][0]
    values = []
    for n in range(len(_arrays(first))):
        rows = [[_arrays(one)[n] for one in row] for row in pairs]
        kept = [np.stack(row) if n in inner else row[0] for row in rows]
        values.append(to_device(np.stack(kept) if n in outer else kept[0], context.instance))
    dims = [tuple([0 if n in marked else None for n in range(len(values))]) for marked in (inner, outer)]
    context.current = (first, layout)
    found = vmap(vmap(_function(context, op, first), dims[0], randomness="same"), dims[1], randomness="same")(*values)
    worst = 0.0
    for i, row in enumerate(pairs):
        for j, one in enumerate(row):
            result = tree_map(lambda t, i=i, j=j: t.select(0, i).select(0, j), found)
            name = f"example {j} in {i} of nested vmap, arrays {sorted(inner)} in {sorted(outer)}"
            worst = max(worst, _checked(context, op, d, one, result, name, layout))
    return worst


@operator_property("vmap_random", some(2, when=lambda op: op.random))
def drawn(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> None:
    """A draw under ``vmap`` is one for all examples, one for each of them, or an error, as ``randomness`` says."""
    for sample in context.each(op, d, layout):
        given = _arrays(sample)
        if sum(array.size for array in given) > MOST:
            continue
        context.current = (sample, layout)
        values = [to_device(array, context.instance) for array in given]
        function = _function(context, op, sample)
        numbers = to_device(np.zeros(EXAMPLES, np.float32), context.instance)
        dims = (0, *(None for _ in values))

        def draws(kind: str) -> tuple[Array, ...]:
            run = vmap(lambda _, *rest: function(*rest), dims, randomness=kind)  # noqa: B023 - called here
            return split(sample, run(numbers, *values), context.reference)[0]  # noqa: B023

        alone = split(sample, function(*values), context.reference)[0]
        for one, same in zip(alone, draws("same"), strict=True):
            if not all(np.array_equal(row, one, equal_nan=one.dtype.kind in "fc") for row in same):
                raise Failure("randomness='same': the examples differ from a call without vmap", sample, layout)
        for one, different in zip(alone, draws("different"), strict=True):
            if different.shape != (EXAMPLES, *one.shape):
                raise Failure(f"randomness='different': a result has the shape {different.shape}", sample, layout)
            if len(np.unique(one)) > 8 and any(np.array_equal(different[0], row) for row in different[1:]):
                raise Failure("randomness='different': two examples have the same numbers", sample, layout)
        try:
            draws("error")
        except RuntimeError as error:
            if "randomness error mode" not in str(error):
                raise
        else:
            raise Failure("randomness='error': the draw does not raise RuntimeError", sample, layout)


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


class _AtOnce:
    """One call for all examples, which are along ``dim`` of the arrays in ``marked``."""

    def __init__(
        self,
        context: Context,
        op: Operator[..., Any],
        examples: list[Sample],
        marked: frozenset[int],
        dim: int,
        layout: str,
    ) -> None:
        self.context, self.op, self.examples, self.layout = context, op, examples, layout
        along = f" in dim {dim}" if dim else ""
        self.name = f"of {len(examples)}, arrays {sorted(marked)} batched{along}"
        columns = list(zip(*[_arrays(example) for example in examples], strict=True))
        self.dims = tuple([min(dim, column[0].ndim) if i in marked else None for i, column in enumerate(columns)])
        self.tensors = [
            to_device(column[0] if along is None else np.stack(column, along), context.instance)
            for column, along in zip(columns, self.dims, strict=True)
        ]
        self.function = _function(context, op, examples[0])
        context.current = (examples[0], layout)

    def refuses_an_example(self) -> bool:
        """Return whether the operator raises for one example alone, in the memory that all share."""
        try:
            self.function(
                *[t if dim is None else t.select(dim, 0) for t, dim in zip(self.tensors, self.dims, strict=True)]
            )
        except Exception:  # any error of the operator
            return True
        return False

    def agreed(self, d: dtype) -> float:
        """Compare the results with those of single calls. Return the largest error in ULP."""
        found = vmap(self.function, self.dims, randomness="same")(*self.tensors)
        worst = 0.0
        for number, one in enumerate(self.examples):
            result = tree_map(lambda t, number=number: t.select(0, number), found)
            name = f"example {number} {self.name}"
            worst = max(worst, _checked(self.context, self.op, d, one, result, name, self.layout))
        return worst


def _function(context: Context, op: Operator[..., Any], sample: Sample) -> Callable[..., Any]:
    """Return a call of the operator as a function of the arrays of a sample."""

    def one(*values: Tensor) -> Any:
        rest = iter(values)
        args, kwargs = mapped((sample.args, dict(sample.kwargs)), lambda _: next(rest))
        return called(op, args, kwargs, context.instance)

    return one
