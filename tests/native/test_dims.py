"""Dims that do not count from the front, which only a mistake inside the framework passes to a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.samples.sample import HostArray
from candelabra_native.kernels import contributed


@cache
def kernels() -> dict[str, tuple[Callable[..., Any], int]]:
    """Return the contributed kernels with a dim, and its position among their arguments."""
    found = {}
    for name, kernel in contributed({}, every_size=True).items():
        parameters = OPERATORS[name].schema.parameters if name in OPERATORS else ()
        positions = [i for i, p in enumerate(parameters) if p.kind in ("dim", "dims")]
        function = kernel.for_dtype(float32) if positions else None
        if function is not None:
            found[name] = function, positions[0]
    return found


def array_of(value: Any) -> Any:
    """Return what a kernel gets for an argument of a sample."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (HostArray, np.ndarray)):
        return [array_of(each) for each in value]
    return np.ascontiguousarray(value.array if isinstance(value, HostArray) else value) if _is_array(value) else value


def _is_array(value: Any) -> bool:
    return isinstance(value, (HostArray, np.ndarray))


def call_along(name: str, position: int) -> tuple[list[Any], int, int]:
    """Return arguments of a call, the dim, and the number of dims of the first array."""
    record = OPERATORS[name]
    parameters = record.schema.parameters
    for sample in Context("cpu:0").samples(record, float32):
        named = {p.name: p.default for p in parameters} | dict(zip((p.name for p in parameters), sample.args))
        arguments = [array_of((named | sample.kwargs)[p.name]) for p in parameters]
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        dim = arguments[position]
        one = dim[0] if isinstance(dim, tuple) and dim else dim
        if isinstance(one, int) and first.ndim > 1 and first.size > 1:
            arguments[position] = (one % first.ndim,) if parameters[position].kind == "dims" else one % first.ndim
            return arguments, one % first.ndim, first.ndim
    raise AssertionError(f"{name} has no sample of several dims with a dim")


def same(out: Any, due: Any) -> bool:
    """Return whether two results are equal."""
    pairs = zip(out, due, strict=True) if isinstance(due, tuple) else [(out, due)]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("name", sorted(kernels()))
def test_a_kernel_refuses_dims_that_are_not_canonical(name: str) -> None:
    """A negative dim, or one beyond the last, raises or means the same dim: it never addresses other memory."""
    function, position = kernels()[name]
    arguments, dim, rank = call_along(name, position)
    due = function(*arguments)
    assert due is not NotImplemented
    for wrong in (dim - rank, rank):
        changed = [*arguments]
        changed[position] = (wrong,) if isinstance(arguments[position], tuple) else wrong
        try:
            out = function(*changed)
        except (IndexError, OverflowError, ValueError):
            continue
        assert out is NotImplemented or same(out, due)


@pytest.mark.parametrize("name", ["sum", "argmax", "cumsum", "softmax_backward", "sort"])
def test_the_refusal_says_what_a_kernel_expects(name: str) -> None:
    """Each plan checks the dims once for a layout, and names the dim, the shape and the remedy."""
    function, position = kernels()[name]
    arguments, dim, rank = call_along(name, position)
    arguments[position] = (dim - rank,) if isinstance(arguments[position], tuple) else dim - rank
    words = (
        rf"a kernel got dim {dim - rank} for an array of shape \(.*\): expected a canonical dim, from 0 to {rank - 1}"
    )
    with pytest.raises(IndexError, match=words):
        function(*arguments)
