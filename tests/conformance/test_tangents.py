"""The property of forward mode: the rules of the core pass, and a rule that is wrong fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import candelabra as cd
import pytest
from candelabra._transforms.tangent_rules import kind_of
from candelabra.library import OPERATORS
from candelabra_conformance.mutants.hunting import KILLED, hunt

from tests.conformance.failing import messages

SOME = (
    "mul",
    "where",
    "softmax",
    "sort",
    "linalg_cholesky_ex",
    "index_put",
    "transpose",
    "logsumexp",
    "linear",
    "round",
    "var_mean",
    "linalg_vector_norm",
    "prod",
    "cumprod",
    "kthvalue",
    "scatter_extreme",
    "attention",
    "linalg_svd",
    "linalg_lu_factor_ex",
)
"""Operators of every kind: pointwise, declared, linear, views, composites, and without a slope."""


def test_no_rule_is_transposed() -> None:
    """To transpose a vector-Jacobian product costs two more passes: each operator that needs a rule has one."""
    assert [name for name, op in OPERATORS.items() if kind_of(op) == "transposed"] == []


@pytest.mark.parametrize("operator", SOME)
def test_the_rules_are_right(operator: str) -> None:
    """Rules of every kind pass on the reference device."""
    assert messages(operator, "tangent") == []


@contextmanager
def declared(operator: str, rule: Callable[..., Any]) -> Iterator[None]:
    """Declare another tangent rule of an operator inside the block."""
    op = OPERATORS[operator]
    before = op.tangent, op.tangent_is_joint
    op.jvp(rule)
    try:
        yield
    finally:
        op.tangent, op.tangent_is_joint = before
        op.clear()


WRONG: dict[str, tuple[str, Callable[..., Any]]] = {
    "a factor": ("tanh", lambda t_input, out: t_input * (1 - out * out) * 2),
    "the vector-Jacobian product of a triangular matrix": (
        "cumsum",
        lambda t_input, dim: t_input.flip(dim).cumsum(dim).flip(dim),
    ),
    "taken for linear": ("exp", lambda t_input: t_input.exp()),
    "one term of the product rule": ("mul", lambda t_input, input, other: t_input * other),
    "a constant": ("sum", lambda t_input, out: None),
    "only the diagonal": ("softmax", lambda t_input, out: t_input * out),
    "another shape": ("add", lambda t_input, t_other=None: t_input),
    "another dtype": ("neg", lambda t_input: -t_input.double() if t_input.dtype == cd.float32 else -t_input.float()),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_fails(name: str) -> None:
    """On the reference, in the dtypes of finite differences and in the others."""
    operator, rule = WRONG[name]
    with declared(operator, rule):
        assert messages(operator, "tangent")
    assert not messages(operator, "tangent")


@pytest.mark.parametrize("name", ["softmax-forgets-the-sum", "slope-of-tanh-has-a-wrong-sign"])
def test_a_kernel_that_forward_mode_calls_is_caught(name: str) -> None:
    """The kernels of derivatives serve tangents, too."""
    finding = hunt(name)
    assert finding.verdict == KILLED, finding


def test_rules_are_checked_when_they_are_declared() -> None:
    """A rule names inputs, outputs and tangents, at least one of the latter."""
    with pytest.raises(
        TypeError, match=r"'g' is neither an input, an output nor a tangent \(t_input\); tangent rule of"
    ):
        OPERATORS["tanh"].jvp(lambda g, t_input: g)
    with pytest.raises(TypeError, match=r"a tangent rule must be linear in tangents and use one of \['t_input'\]"):
        OPERATORS["tanh"].jvp(lambda input: input)
    with pytest.raises(TypeError, match="'out' is neither an input, an output nor a tangent"):
        OPERATORS["tanh"].jvp(lambda t_input, out: (out, t_input), joint=True)  # it computes the output
    assert OPERATORS["tanh"].tangent is None
