"""The records' shape rules, which run after a kernel has failed, agree with the results of kernels."""

import functools

import candelabra as cd
import pytest
from candelabra.library import OPERATORS, canonical, unchecked
from candelabra_conformance.calling import at, called, tensors
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import CONTIGUOUS, placed

from tests.conformance.covering import sampled_operators

RULED = [each for each in sampled_operators(3) if OPERATORS[str(each.values[0])].rule is not unchecked]


@functools.cache
def context() -> Context:
    """Return a context that tests the reference device."""
    return Context(str(cd.get_default_device()))


@pytest.mark.parametrize("name", RULED)
def test_rules_of_shape_say_what_kernels_return(name: str) -> None:
    """Rule and result agree for every sample of every kind, in the operator's main dtype."""
    op = OPERATORS[name]
    (d,) = context().main_dtypes(op)
    asked = 0
    for found in context().samples(op, d):
        args, kwargs = placed([found.args, dict(found.kwargs)], CONTIGUOUS, context().instance)
        result = tuple(tuple(t.shape) for t in tensors(called(op, args, kwargs, context().instance)))
        with context().device:
            here = context().device
            given = canonical(op.form("function"), tuple(at(list(args), here)), at(kwargs, here))
        shapes = op.rule(op, given)
        if shapes is None:  # The kernel's own error is sufficient for this call.
            continue
        asked += 1
        assert result == (tuple(tuple(s) for s in shapes) if op.schema.result is not None else (tuple(shapes),))
    assert asked or op.data_dependent or op.body is not None
