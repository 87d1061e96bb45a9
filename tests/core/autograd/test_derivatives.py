"""Every operator with a derivative, against finite differences, to second order. No operator without a sample."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.operator.record import OPERATORS

F, C = cd.float64, cd.complex128
DOMAINS = {"acosh": (1.2, 1.9)}
"""Where a pointwise operator is differentiable, other than 0.3 to 0.9."""
REAL_ONLY = "not implemented for"


class Samples:
    """Makes leaves with values that are all different (no ties), in one dtype."""

    def __init__(self, dtype: Any, low: float = 0.3, high: float = 0.9) -> None:
        self.dtype, self.low, self.high = dtype, low, high
        self.random = random.Random(7)

    def __call__(self, *shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return (
            cd.tensor([self.number() for _ in range(count)], dtype=self.dtype).reshape(shape).detach().requires_grad_()
        )

    def number(self) -> Any:
        value = self.random.uniform(self.low, self.high)
        return complex(value, self.random.uniform(self.low, self.high)) if self.dtype is C else value


def index(*values: Any) -> Any:
    """An int64 tensor."""
    return cd.tensor(list(values), dtype=cd.int64)


def mask(*values: Any) -> Any:
    """A bool tensor."""
    return cd.tensor(list(values), dtype=cd.bool)


ROWS = (slice(0, 2, 1), 1)
ONES, NONE, TWO = (1, 1), (0, 0), (2, 2)
SAMPLES: dict[str, Callable[[Samples], tuple[Any, ...]]] = {
    "where": lambda t: (mask(True, False, True), t(2, 3), t(3)),
    "clamp_min": lambda t: (t(2, 3), 0.5),
    "clamp_max": lambda t: (t(2, 3), 0.5),
    "conv": lambda t: (t(1, 2, 4, 4), t(3, 2, 2, 2), t(3), (2, 1), (1, 0), (1, 2), 1),
    "conv_input": lambda t: (t(1, 3, 3, 3), t(3, 2, 2, 2), (1, 2, 4, 4), ONES, NONE, ONES, 1),
    "conv_weight": lambda t: (t(1, 2, 4, 4), t(1, 3, 3, 3), (3, 2, 2, 2), ONES, NONE, ONES, 1),
    "clone": lambda t: (t(2, 3),),
    "copied": lambda t: (t(2, 3), t(3)),
    "filled": lambda t: (t(2, 3), t()),
    "gather": lambda t: (t(3, 2), 0, index([0, 0], [2, 1])),
    "scatter_add": lambda t: (t(3, 2), 0, index([0, 0], [0, 1]), t(3, 2)),
    "scatter_src": lambda t: (t(3, 2), 0, index([0, 0], [2, 1]), t(3, 2)),
    "index_select": lambda t: (t(3, 2), 0, index(2, 0, 2)),
    "index_add": lambda t: (t(3, 2), 0, index(2, 0, 2), t(3, 2)),
    "index": lambda t: (t(3, 2), (index(2, 0, 2), None)),
    "index_put": lambda t: (t(3, 2), (index(2, 0), None), t(2), True),
    "alias": lambda t: (t(2, 3),),
    "permute": lambda t: (t(2, 3, 1), (2, 0, 1)),
    "transpose": lambda t: (t(2, 3), 0, 1),
    "t": lambda t: (t(2, 3),),
    "expand": lambda t: (t(2, 1), (3, 2, 4)),
    "view": lambda t: (t(2, 3), (3, 2)),
    "unsqueeze": lambda t: (t(2, 3), 1),
    "squeeze": lambda t: (t(2, 1, 3), (1,)),
    "basic_index": lambda t: (t(3, 2), ROWS),
    "basic_index_adjoint": lambda t: (t(2), (3, 2), ROWS),
    "basic_index_scatter": lambda t: (t(3, 2), t(2), ROWS),
    "as_strided": lambda t: (t(3, 4), (2, 2), (5, 2), 1, ((4, 1), 0)),
    "diagonal": lambda t: (t(3, 4), 1, 0, 1),
    "diagonal_scatter": lambda t: (t(3, 4), t(3), 1, 0, 1),
    "unfold": lambda t: (t(5), 0, 3, 1),
    "view_as_real": lambda t: (t(2),),
    "view_as_complex": lambda t: (t(3, 2),),
    "cat": lambda t: ((t(2, 1), t(2, 3)), 1),
    "flip": lambda t: (t(2, 3), (1,)),
    "tril": lambda t: (t(3, 3), 0),
    "triu": lambda t: (t(3, 3), 1),
    "softmax": lambda t: (t(2, 3), 1),
    "log_softmax": lambda t: (t(2, 3), 0),
    "gelu": lambda t: (t(2, 3), "tanh"),
    "softplus": lambda t: (t(3), 1.5, 20.0),
    "leaky_relu": lambda t: (t(3), 0.1),
    "elu": lambda t: (t(3), 1.0, 1.0, 1.0),
    "hardtanh": lambda t: (t(3), 0.4, 0.7),
    "embedding": lambda t: (t(4, 2), index(1, 3, 1), -1, False),
    "normalize": lambda t: (t(2, 3), t(3), t(3), (1,), 1e-5),
    "max_pool": lambda t: (t(1, 1, 4, 4), TWO, TWO, NONE, ONES, TWO),
    "sum_pool": lambda t: (t(1, 1, 4, 4), TWO, TWO, NONE, ONES, TWO),
    "sum_pool_adjoint": lambda t: (t(1, 1, 2, 2), (1, 1, 4, 4), TWO, TWO, NONE, ONES),
    "scatter_planes": lambda t: (t(1, 2, 2), index([[0, 3], [1, 2]]), 4, True),
    "sum": lambda t: (t(2, 3), (1,)),
    "mean": lambda t: (t(2, 3), (0,), True),
    "prod": lambda t: (t(2, 3), (1,)),
    "amax": lambda t: (t(2, 3), (1,)),
    "amin": lambda t: (t(2, 3), None),
    "cumsum": lambda t: (t(2, 3), 1),
    "cumprod": lambda t: (t(2, 3), 1),
    "logsumexp": lambda t: (t(2, 3), (1,)),
    "matmul": lambda t: (t(2, 3), t(3, 2)),
    "sort": lambda t: (t(2, 3), 1),
}
BY_KEYWORD: dict[str, Callable[[Samples], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "round": lambda t: ((t(2, 3),), {"decimals": 0}),
    "cast": lambda t: ((t(2, 3),), {"dtype": C}),
    "moved": lambda t: ((t(2, 3),), {"target": t(1).device, "dtype": F}),
}
CALLS: dict[str, Callable[..., Any]] = {}
"""How to call an operator whose domain is no open set, or whose results are determined up to a choice (eigenvectors):
given its function and the sample's arguments, a differentiable function of free parameters."""
for path in sorted((Path(__file__).parents[2] / "operators" / "samples").glob("*.py")):
    family = importlib.import_module(f"tests.operators.samples.{path.stem}")
    SAMPLES.update(getattr(family, "SAMPLES", {}))
    BY_KEYWORD.update(getattr(family, "BY_KEYWORD", {}))
    DOMAINS.update(getattr(family, "DOMAINS", {}))
    CALLS.update(getattr(family, "CALLS", {}))
NEEDS_COMPLEX = ("view_as_real",)
ELSEWHERE = ("moved",)
"""Between devices and dtypes at once: its tests are those of ``Tensor.to``."""
DERIVED = sorted(name for name, record in OPERATORS.items() if record.rules)


def sample(name: str, dtype: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for one operator: from the table, or tensors that broadcast for a pointwise one."""
    make = Samples(dtype, *DOMAINS.get(name, ()))
    if name in BY_KEYWORD:
        return BY_KEYWORD[name](make)
    if name in SAMPLES:
        return SAMPLES[name](make), {}
    record = OPERATORS[name]
    if not getattr(record.rule, "pointwise", False) or any(
        p.kind not in ("tensor", "operand") for p in record.schema.parameters
    ):
        pytest.fail(f"{name} has a derivative and no sample: add one to SAMPLES")
    return (make(2, 3), *[make(3) for _ in record.schema.parameters[1:]]), {}


@pytest.mark.parametrize("dtype", [F, C], ids=["real", "complex"])
@pytest.mark.parametrize("name", [n for n in DERIVED if n not in ELSEWHERE])
def test_derivatives_agree_with_finite_differences(name: str, dtype: Any) -> None:
    """First and second derivatives, along a random direction, wherever the operator takes the dtype."""
    args, kwargs = sample(name, dtype)
    if dtype is F and name in NEEDS_COMPLEX:
        return
    leaves = [
        a for arg in args for a in (arg if isinstance(arg, tuple) else (arg,)) if getattr(a, "requires_grad", False)
    ]

    def call(*values: Any) -> Any:
        given = iter(values)
        rebuilt = [
            tuple(next(given) if getattr(a, "requires_grad", False) else a for a in arg) if isinstance(arg, tuple)
            else next(given) if getattr(arg, "requires_grad", False) else arg
            for arg in args
        ]  # fmt: skip
        function = OPERATORS[name].function
        return CALLS[name](function, *rebuilt, **kwargs) if name in CALLS else function(*rebuilt, **kwargs)

    try:
        call(*leaves)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        if dtype is F or REAL_ONLY not in str(error):
            raise
        return
    assert gradcheck(call, leaves, fast_mode=True)
    assert gradgradcheck(call, leaves, fast_mode=True)


def test_every_primitive_says_whether_it_is_differentiable() -> None:
    """A primitive has rules, or a reason why not."""
    silent = [n for n, r in OPERATORS.items() if r.body is None and not r.rules and r.not_differentiable is None]
    assert silent == []
