"""The kernels of optimisers' steps as text: the arguments of a launch for many parameters."""

from itertools import product

import pytest
from candelabra.dtypes import float64
from candelabra_clike.kernels import optimizers
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
