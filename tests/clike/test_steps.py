"""The kernels of optimisers' steps as text: the arguments of a launch for many parameters."""

from itertools import product

import pytest
from candelabra.dtypes import float64
from candelabra_clike.kernels import optimizers
from candelabra_clike.language import ExpressionError
from candelabra_clike.templates.optimizer_steps import OptimizerStep

STEPS = [
    *[optimizers.sgd(decayed) for decayed in (False, True)],
    *[optimizers.momentum(*options) for options in product((False, True), repeat=2)],
    *[
        optimizers.adam(decay, near, largest)
        for decay, near, largest in product(("", "coupled", "decoupled"), (False, True), (False, True))
    ],
]
SIZES = {"i32": 4, "u32": 4, "i64": 8, "u64": 8, "f32": 4, "f64": 8, "": 8}
"""Bytes of an argument of a kernel; ``""`` is a buffer."""


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_arguments_are_no_more_than_any_device_takes(step: OptimizerStep) -> None:
    """OpenCL's full profile guarantees 1024 bytes, which are 128 arguments including the count that engines add."""
    for serial in (True, False):
        types = step.several(float64, serial, step.widths[-1]).types()
        assert len(types) + 1 <= 128
        assert sum(SIZES[type] for type in types) + 8 <= 1024
        assert len(types) + 1 + len(step.arrays) + 1 > 128  # One parameter more would exceed the limit.


def test_there_are_few_kernels_of_a_step() -> None:
    """Each number of parameters would be a separate kernel; only powers of two are compiled."""
    assert {step.name: step.widths for step in STEPS if "_" not in step.name} == {
        "sgd": (2, 4, 8, 16, 32, 41),
        "momentum": (2, 4, 8, 16, 30),
        "adam": (2, 4, 8, 16, 23),
    }


def test_steps_of_other_texts_have_other_names() -> None:
    """A name identifies one kernel in the cache and in errors."""
    sources = [step.several(float64, True, width) for step in STEPS for width in step.widths]
    sources += [step.single(float64, True) for step in STEPS]
    assert len({source.name for source in sources}) == len(sources)


def test_a_step_of_a_wrong_type_names_the_step_and_the_line() -> None:
    """The error comes where the step is declared, for each dtype of parameters."""
    with pytest.raises(
        ExpressionError, match=r"of 'down' in f32 \(test_steps\.py, line \d+\): expected 1 values, got 2"
    ):
        OptimizerStep("down", ("p", "g"), ("p",), ("lr",), lambda p, g, lr: (p - g * lr, g))
    with pytest.raises(ExpressionError, match=r"of 'down' .*: there is no parameter 'rate'"):
        OptimizerStep("down", ("p", "g"), ("p",), ("lr",), lambda p, g, rate: p - g * rate)
    with pytest.raises(ExpressionError, match=r"of 'down' .*: expected a value of type f32, got bool"):
        OptimizerStep("down", ("p", "g"), ("p",), (), lambda p, g: p > g)


def test_the_state_of_a_step_is_computed_once() -> None:
    """The parameter uses the new momentum, which is stored too."""
    text = optimizers.momentum(True, True).single(float64, True).body
    for line in (
        "const f64 c0 = vg * sign + vp * decay;", "const f64 c1 = vb * keep + c0 * share;",
        "qp[i] = vp - (c0 + c1 * keep) * lr;", "qb[i] = c1;",
    ):  # fmt: skip
        assert line in text
