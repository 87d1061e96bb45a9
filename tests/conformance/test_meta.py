"""The device meta gives the same shapes, dtypes and strides as a device with data, for every operator's samples."""

from __future__ import annotations

import functools
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import OPERATORS, open_device
from candelabra_conformance.calling import called, tensors
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import CONTIGUOUS, placed

from tests.conformance.covering import sampled_operators


@functools.cache
def context() -> Context:
    """Return a context that tests the reference device."""
    return Context(str(cd.get_default_device()))


def geometry(result: Any, views: bool) -> list[tuple[Any, ...]]:
    """Return shape and dtype of each tensor of a result; for a view also the strides of dims with several elements."""
    found = []
    for t in tensors(result):
        steps = [k for k, size in zip(t.stride(), t.shape, strict=True) if size > 1] if views and t.numel() else []
        found.append((tuple(t.shape), t.dtype, steps))
    return found


@pytest.mark.parametrize("recorded", [False, True], ids=["rule", "body"])
@pytest.mark.parametrize("name", sampled_operators(3))
def test_shapes_dtypes_and_strides_without_data(name: str, recorded: bool) -> None:
    """Shape rules, and the bodies of composites if a gradient is required, do not read values."""
    op = OPERATORS[name]
    if op.data_dependent or (recorded and (op.body is None or op.differentiable)):
        return
    (d,) = context().main_dtypes(op)
    if recorded and not (d.is_floating_point or d.is_complex):
        return
    for found in context().samples(op, d):
        results = []
        for instance in (context().instance, open_device("meta")):
            args, kwargs = placed([found.args, dict(found.kwargs)], CONTIGUOUS, instance)
            if recorded:
                args = tuple(
                    a.requires_grad_() if isinstance(a, cd.Tensor) and a.is_floating_point() else a for a in args
                )
            results.append(geometry(called(op, args, kwargs, instance), op.view))
        assert results[0] == results[1], found
