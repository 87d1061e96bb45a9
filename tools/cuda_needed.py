"""The kernels that ``make cuda-check`` needs: what the suite's cases, the demo and the marks launch, on a device that
records them.

The axes of the suite define in which dtypes and layouts a property is tested, so this module lists no kernels. Nothing
is computed: if the calls depend on values, the check may need a kernel that is not recorded, and compiles it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor, nn, optim
from candelabra.dtypes import dtype
from candelabra.errors import UnsupportedOperator
from candelabra.library import OPERATORS, Instance, Operator, fallback
from candelabra_clike import Source
from candelabra_conformance.calling import called, tensors
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import CONTIGUOUS, TRANSPOSED, placed, to_layout
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.properties import registry as properties
from candelabra_conformance.properties.gradients import first_derivatives, second_derivatives
from candelabra_conformance.samples.sample import Sample
from cuda_recording import RecordingBackend

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `benchmarks` and `examples`

Chosen = Callable[[Context, Operator[..., Any]], Iterator[tuple[str, dtype, str]]]
"""The properties of an operator to test, each with a dtype and a layout."""
QUICK: Final = frozenset({"float32", "bfloat16", "int64", "complex64", "bool"})
"""A dtype of each kind."""
LAYOUTS: Final = {"float32": ("contiguous", "transposed", "step", "broadcast")}
"""Kernels for different layouts differ only in the loops, so one dtype is recorded in all layouts, the others in
two."""


def everything(context: Context, op: Operator[..., Any], highest_level: int = 3) -> Iterator[tuple[str, dtype, str]]:
    """Choose all combinations that the suite tests up to a level."""
    for name in CALLS:
        for d, layout, level in properties.OF_OPERATORS[name].axes(context, op):
            if d is not None and level <= highest_level:
                yield name, d, layout


def quick(context: Context, op: Operator[..., Any]) -> Iterator[tuple[str, dtype, str]]:
    """Choose values in a dtype of each kind on few layouts: every kernel once, in a tenth of the time."""
    for d in context.dtypes(op):
        if d.name in QUICK:
            for layout in LAYOUTS.get(d.name, ("contiguous", "transposed")):
                if context.laid_out(op, d, layout):
                    yield "value", d, layout


def needed(backend: RecordingBackend, names: Sequence[str] = (), chosen: Chosen = everything) -> list[Source]:
    """Return the kernels of these operators; by default those of all operators, of the demo and of the marks."""
    properties.load()
    context = Context(backend.name)
    with fallback("error"):
        for name in names or sorted(OPERATORS):
            backend.recorder.operator = name
            record_operator(context, OPERATORS[name], chosen)
            if name in STEPS:
                record_steps(backend.name, STEPS[name])
        if not names:
            record_programs(f"{backend.name}:0")
    return list(backend.recorder.sources)


def record_operator(context: Context, op: Operator[..., Any], chosen: Chosen) -> None:
    """Make the calls of the suite's cases.

    Their errors are ignored, because many calls fail on a device that computes nothing; only the compiled kernels
    count.
    """
    for name, d, layout in chosen(context, op):
        for sample in samples(context, op, d, layout, name):
            try:
                CALLS[name](op, sample, layout, context.instance)
            except UnsupportedOperator:
                break
            except Exception:
                continue


def samples(context: Context, op: Operator[..., Any], d: dtype, layout: str, name: str) -> Iterator[Sample]:
    """Yield the samples on which a property is tested."""
    return context.each_of(op, d, "special") if name == "special" else context.each(op, d, layout)


# -- calls of the properties ------------------------------------------------------------------------------------------
Call = Callable[[Operator[..., Any], Sample, str, Instance], object]


def value(op: Operator[..., Any], sample: Sample, layout: str, instance: Instance) -> tuple[Tensor, ...]:
    """Call the function and return its results."""
    args, kwargs = placed([list(sample.args), dict(sample.kwargs)], layout, instance)
    made = tensors(called(op, args, kwargs, instance))
    for each in made:
        each.tolist()
    return made


def inplace(op: Operator[..., Any], sample: Sample, layout: str, instance: Instance) -> None:
    """Call the in-place form."""
    args, kwargs = placed([list(sample.args), dict(sample.kwargs)], layout, instance)
    called(op, args, kwargs, instance, op.form("inplace"))


def out(op: Operator[..., Any], sample: Sample, layout: str, instance: Instance) -> None:
    """Call the function with ``out=``, contiguous and not."""
    (made,) = value(op, sample, layout, instance)
    for way in (CONTIGUOUS, TRANSPOSED):
        args, kwargs = placed([list(sample.args), dict(sample.kwargs)], layout, instance)
        target = to_layout(np.ones(tuple(made.shape), host_dtype(made.dtype)), way, instance)
        called(op, args, {**kwargs, "out": target}, instance)


CALLS: Final[dict[str, Call]] = {
    "value": value,
    "special": value,
    "inputs": value,
    "gradient": first_derivatives,
    "gradient2": second_derivatives,
    "inplace": inplace,
    "out": out,
}
"""By the name of the property. The others launch the same kernels again."""

# -- programs ---------------------------------------------------------------------------------------------------------
STEPS: Final[dict[str, Callable[..., optim.Optimizer]]] = {
    "sgd_step": optim.SGD,
    "momentum_step": partial(optim.SGD, momentum=0.9),
    "adam_step": optim.Adam,
    "amsgrad_step": partial(optim.Adam, amsgrad=True),
}
"""The optimisers whose steps have kernels for many parameters, which no operator's sample needs."""


def record_steps(device: str, make: Callable[..., optim.Optimizer], parameters: int = 50) -> None:
    """Take a step with more parameters than one launch accepts, so that launches of different widths are recorded."""
    with cd.device(device):
        moved = [nn.Parameter(cd.zeros(2)) for _ in range(parameters)]
        for p in moved:
            p.grad = cd.zeros(2)
    make(moved).step()


def record_programs(device: str) -> None:
    """Run the programs of the demo and the marks, with the sizes of the marks."""
    from rich.progress import Progress

    from benchmarks.accelerator.marks import MARKS
    from benchmarks.accelerator.sizes import SIZES
    from benchmarks.accelerator.timing import HostClock
    from examples.digits import read_digits, train

    once = SIZES["full"]._replace(batches=1, calls=1)
    train(device, 1, 0, read_digits(), Progress(disable=True))
    for mark in MARKS.values():
        mark.measure(cd, device, once, HostClock())
