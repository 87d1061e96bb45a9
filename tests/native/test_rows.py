"""Row kernels of native: the same bits with vectors of eight and of sixteen, and gradients of parameters in parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra_clike import Engine, Source
from candelabra_clike.kernels.normalization import BACKWARD, KERNELS, NORMALIZE, PARAMETERS
from candelabra_clike.kernels.softmax import SOFTMAX, row_kernel
from candelabra_clike.templates.rows.program import RowProgram
from candelabra_clike.templates.rows.serial import stages
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import NativeEngine

Array = np.ndarray[Any, Any]


class Narrow(NativeEngine):
    """The engine with vectors of eight."""

    traits = replace(NativeEngine.traits, lanes=8)


class Wide(NativeEngine):
    """The engine with vectors of sixteen, which are several registers on some processors."""

    traits = replace(NativeEngine.traits, lanes=16)


NARROW, WIDE = Narrow(), Wide()


class Many(NativeEngine):
    """The engine with more processors than sums."""

    traits = replace(NativeEngine.traits, compute_units=16)


def values(*shape: int) -> Array:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def run(engine: Engine, program: RowProgram, arrays: list[Array], dim: int, numbers: tuple[float, ...]) -> list[Array]:
    """Run a program along one dim of the first array."""
    outs = row_kernel(program, float32)([strided(x, engine) for x in arrays], arrays[0].shape, (dim,), numbers)
    return [np.asarray(payload(out)) for out in outs]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("size", [7, 75, 2303])
def test_results_have_the_same_bits_for_any_vectors(dim: int, size: int) -> None:
    """Lanes are combined in one order; remainders of rows and of blocks of columns too."""
    x, g = (values(*((5, size) if dim else (size, 45))) for _ in range(2))
    mean, rstd = x.mean(dim, keepdims=True), 1 / x.std(dim, keepdims=True)
    cases: list[tuple[RowProgram, list[Array], tuple[float, ...]]] = [
        (SOFTMAX, [x], ()), (NORMALIZE[False, False], [x], (1e-5,)), (BACKWARD[False], [g, x, mean, rstd], ()),
        (PARAMETERS, [g, x, mean, rstd], ()),
    ]  # fmt: skip
    for program, arrays, numbers in cases:
        for narrow, wide in zip(
            run(NARROW, program, arrays, dim, numbers), run(WIDE, program, arrays, dim, numbers), strict=True
        ):
            assert narrow.tobytes() == wide.tobytes(), program.name


def test_reductions_that_use_a_result_come_after_it() -> None:
    """Both sums of a gradient are one stage. A variance waits for its mean, and the sum of exponentials for the top."""
    assert [len(stage) for stage in stages(BACKWARD[True].passes)] == [2]
    assert [len(stage) for stage in stages(PARAMETERS.passes)] == [2]
    assert [len(stage) for stage in stages(NORMALIZE[True, True].passes)] == [1, 1]
    assert [len(stage) for stage in stages(SOFTMAX.passes)] == [1, 1]


def test_the_stage_before_the_last_loop_loads_the_output_ahead() -> None:
    """Its processor would read a row of the output while it stores it. A softmax has stored into that row before."""
    sources: list[Source] = []

    class Recording(NativeEngine):
        def compile(self, source: Source) -> Any:
            sources.append(source)
            return super().compile(source)

    engine = Recording()
    for program, operands, numbers in (
        (NORMALIZE[False, False], 1, (1e-5,)),
        (BACKWARD[False], 4, ()),
        (SOFTMAX, 1, ()),
    ):
        run(engine, program, [values(5, 75) for _ in range(operands)], 1, numbers)
    ahead = [source.body.count("PREFETCH(out + ") for source in sources]
    assert ahead == [1, 1, 0]
    variance, last = sources[0].body.split("const INDEX n = span0;")[2:]
    assert "PREFETCH(out + " in variance
    assert "STORE_X8(f32, out + " in last


@pytest.mark.parametrize(("shape", "dims"), [((4096, 24), (0,)), ((1021, 64), (0,)), ((6, 5, 77, 30), (0, 2, 3))])
def test_gradients_of_parameters_are_exact_however_they_are_divided(shape: tuple[int, ...], dims: Any) -> None:
    """Few sums are divided into parts if the size of a dim has a divisor, which that of the second case has not."""
    g, x = values(*shape), values(*shape)[::-1].copy()
    over = (1,) if len(shape) == 2 else dims
    mean, rstd = x.mean(over, keepdims=True), 1 / x.std(over, keepdims=True)
    kernel = KERNELS["normalize_parameters_backward"].for_dtype(float32)
    engine = Many()
    wide = [a.astype(np.float64) for a in (g, x, mean, rstd)]
    z = (wide[1] - wide[2]) * wide[3]
    for keepdim in (True, False):
        operands = [strided(a, engine) for a in (g, x, mean, rstd)]
        found = [np.asarray(payload(out)) for out in kernel(*operands, dims, keepdim)]
        np.testing.assert_allclose(found[0], (wide[0] * z).sum(dims, keepdims=keepdim), rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(found[1], wide[0].sum(dims, keepdims=keepdim), rtol=1e-5, atol=1e-4)
