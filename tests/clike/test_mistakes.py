"""Wrong expressions of families whose other tests compute: each is an error where it is declared, with its place."""

from collections.abc import Callable

import pytest
from candelabra.dtypes import float32, float64, int32
from candelabra_clike.kernels.tangents import ElementwiseSeveral
from candelabra_clike.language import ExpressionError, cast, select
from candelabra_clike.language.kernels import KernelBuilder
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing.scatter import ScatterRule
from candelabra_clike.templates.pairs import PairGradient
from candelabra_clike.templates.random_numbers import HALVES, RandomKernel, Values


def gamma(k: KernelBuilder) -> Values:
    """Return values of a random kernel that multiply numbers of two types."""
    shape, start = k.reads("shape", float64), k.number("start")
    return lambda indices: [shape[start + i] * cast("f32", HALVES[0]) for i in indices]


MISTAKES: dict[str, tuple[Callable[[], object], str, str]] = {
    "elementwise": (
        lambda: Elementwise.of("shifted", lambda a, b: a + b, (float32, int32), float32), "shifted",
        r"'\+' of f32 and i32: cast one of them",
    ),
    "several results": (
        lambda: ElementwiseSeveral("halves", lambda a: (a, a > 0), (float32,), (float32, float32)), "halves",
        "expected a value of type f32, got bool",
    ),
    "scatter": (
        lambda: ScatterRule.of("put", float32, float64, lambda a, b: select(b > a, b, a)), "put",
        "'>' of f64 and f32: cast one of them",
    ),
    "pairs": (
        lambda: PairGradient("distances", lambda g, d: g / d, lambda w, d: w * d > 0), "'distances' in f32",
        "expected a value of type f32, got bool",
    ),
    "random numbers": (
        lambda: RandomKernel("gamma", float64, 1, gamma).source(serial=True, wide=False), "'gamma'",
        r"'\*' of f64 and f32: cast one of them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", MISTAKES)
def test_a_mistake_is_an_error_where_it_is_declared(family: str) -> None:
    """The error names the operator and the line."""
    declare, operator, reason = MISTAKES[family]
    with pytest.raises(ExpressionError, match=rf"of {operator} \(\w+\.py, line \d+\): {reason}") as raised:
        declare()
    assert raised.value.operator == operator
    # Kernels of random numbers are built by their template, which is the place if their values are of another package.
    assert raised.value.location.startswith("random_numbers.py" if family == "random numbers" else "test_mistakes.py")
