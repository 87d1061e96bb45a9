"""The property of vmap: the rules of the core pass, and a rule that is wrong fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.mutants.hunting import KILLED, hunt

from tests.conformance.failing import messages

SOME = ("add", "where", "sum", "sort", "matmul", "index_put", "view", "permute", "linalg_cholesky_ex", "gather", "conv")


@pytest.mark.parametrize("operator", SOME)
def test_the_rules_are_right(operator: str) -> None:
    """Rules of every family pass on the reference device."""
    assert messages(operator, "vmap") == []


@contextmanager
def rule_of(operator: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Replace the kernel of an operator on the first level by a changed one."""
    from candelabra._transforms.batching import VMAP

    table, op = VMAP.at(1).kernels, OPERATORS[operator]
    right = table.get(operator)
    dict.__setitem__(table, operator, change(right))
    op.clear()
    try:
        yield
    finally:
        dict.__delitem__(table, operator)
        op.clear()


def reversed_examples(right: Any) -> Any:
    """The examples are in the reverse order."""

    def kernel(*args: Any) -> Any:
        out = right(*args)
        if out.batched:
            out.tensor = out.tensor.flip(0)
        return out

    return kernel


def first_example_for_all(right: Any) -> Any:
    """All examples have the result of the first."""

    def kernel(*args: Any) -> Any:
        out = right(*args)
        if out.batched:
            out.tensor = out.tensor[:1].expand(out.tensor.shape)
        return out

    return kernel


def batched_first_argument_only(right: Any) -> Any:
    """A batch of the second argument is that of its first example."""

    def kernel(a: Any, b: Any, *rest: Any) -> Any:
        if b.batched:
            b = type(b)(b.tensor[0], b.frame, False)
        return right(a, b, *rest)

    return kernel


@pytest.mark.parametrize(
    ("operator", "change"),
    [
        ("exp", reversed_examples),
        ("matmul", first_example_for_all),
        ("cumsum", reversed_examples),
        ("maximum", batched_first_argument_only),
        ("transpose", first_example_for_all),
    ],
)
def test_a_wrong_rule_fails(operator: str, change: Callable[[Any], Any]) -> None:
    """The failure names the example and the arrays that are batched."""
    with rule_of(operator, change):
        found = messages(operator, "vmap")
    assert found
    assert all("example " in message and "batched: " in message for message in found)


@pytest.mark.parametrize(
    "name",
    [
        "products-of-five-dims-use-the-first-matrix",
        "softmax-over-dim-four-is-over-dim-three",
        "sort-of-four-dims-orders-all-as-the-first",
    ],
)
def test_a_kernel_that_is_wrong_with_one_more_dim_is_caught(name: str) -> None:
    """Only vmap calls some operators with that many dims."""
    finding = hunt(name)
    assert finding.verdict == KILLED, finding
