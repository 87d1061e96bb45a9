"""Large results of broadcast operands are stored past the caches, if their rows are whole cache lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import BY_NAME, dtype
from candelabra_clike import Launch, Source
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import NativeEngine
from candelabra_native.finding import Missing


class Cacheless(NativeEngine):
    """The engine as if no data stayed in the caches. It notes the kernels that it is asked for."""

    traits = replace(NativeEngine.traits, cache=0)

    def __init__(self, missing: str = "nothing") -> None:
        super().__init__()
        self.missing = missing
        self.names: list[str] = []

    def compile(self, source: Source) -> Launch:
        if source.name.endswith(self.missing):
            raise Missing(source.name)
        self.names.append(source.name)
        return super().compile(source)


def product_of(engine: Cacheless, a: Any, b: Any, d: dtype) -> Any:
    """Return the product of two arrays by a kernel."""
    kernel = Elementwise.of(f"mul_{d.name}", lambda x, y: x * y, (d, d), d)
    return np.asarray(payload(kernel(strided(a, engine), strided(b, engine))))


@pytest.mark.parametrize("d", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("left", "right", "lines"), [
    ((3, 1, 64), (3, 5, 1), True), ((7, 1), (1, 9216), True), ((6, 2, 1), (6, 1, 48), True), ((1, 4112), (9, 1), True),
    ((2, 1, 2, 16), (2, 3, 1, 16), True), ((3, 1), (1, 65), False), ((5, 1), (1, 3), False),
])  # fmt: skip
def test_products_of_broadcast_arrays_are_stored_by_lines(
    left: tuple[int, ...], right: tuple[int, ...], lines: bool, d: str, rng: np.random.Generator
) -> None:
    """Each row of the result starts at a cache line; rows of other lengths are written as usual."""
    a, b = ((rng.standard_normal(shape) * 9).astype(d) for shape in (left, right))
    engine = Cacheless()
    np.testing.assert_array_equal(product_of(engine, a, b, BY_NAME[d]), a * b)
    assert any(name.endswith("_past_caches") for name in engine.names) is lines


def test_the_usual_kernel_serves_if_that_for_large_results_is_not_compiled(rng: np.random.Generator) -> None:
    """A wheel may have the kernel of small broadcasts alone."""
    a, b = rng.standard_normal((40, 1)), rng.standard_normal((1, 64))
    engine = Cacheless(missing="_past_caches")
    np.testing.assert_array_equal(product_of(engine, a, b, BY_NAME["float64"]), a * b)
    assert engine.names == ["mul_float64_rows2"]
