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


# -- every in_dim, nested and random forms ----------------------------------------------------------------------------
@pytest.mark.parametrize("operator", ["add", "sum", "matmul", "linear"])
def test_examples_in_the_wrong_dim_fail(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vmap that takes the last dim for every in_dim but 0 is caught, and the message names the dim."""
    from candelabra._transforms import vmap

    right = vmap.to_front
    monkeypatch.setattr(vmap, "to_front", lambda t, dim: right(t, dim if dim != 1 else t.ndim - 1))
    found = messages(operator, "vmap")
    assert found
    assert all("in dim 1" in message or "example" not in message for message in found)


@contextmanager
def rule_of_second_level(operator: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Replace the kernel of an operator inside another vmap by a changed one."""

    def inside(right: Any) -> Any:
        wrong = change(right)

        def kernel(*args: Any) -> Any:
            first = next(a for a in args if hasattr(a, "frame"))
            return (wrong if first.frame.depth > 1 else right)(*args)

        return kernel

    with rule_of(operator, inside):
        yield


@pytest.mark.parametrize(
    ("operator", "change"),
    [("conv", reversed_examples), ("abs", first_example_for_all), ("gather", first_example_for_all)],
)
def test_a_rule_that_is_wrong_inside_another_vmap_fails(operator: str, change: Callable[[Any], Any]) -> None:
    """Only the nested form sees it."""
    assert messages(operator, "vmap_nested") == []
    with rule_of_second_level(operator, change):
        assert messages(operator, "vmap") == []
        found = messages(operator, "vmap_nested")
    assert found
    assert all("of nested vmap, arrays" in message for message in found)


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("_same", lambda out, batched: (out + 1, batched), "differ from a call without vmap"),
        ("_different", lambda out, batched: (out[:1].expand(out.shape), batched), "two examples have the same numbers"),
        ("_different", lambda out, batched: (out[0], False), "two examples have the same numbers"),
    ],
)
def test_wrong_draws_fail(form: str, change: Callable[..., Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that differ though they must not, or the reverse, are caught."""
    from candelabra._transforms import randomness

    assert messages("random_uniform", "vmap_random") == []
    right = getattr(randomness, form)
    monkeypatch.setattr(randomness, form, lambda *args: change(*right(*args)))
    found = messages("random_uniform", "vmap_random")
    assert found
    assert all(words in message for message in found)


def test_draws_without_an_error_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """``randomness="error"`` must raise."""
    from candelabra._transforms import vmap

    class Lenient(vmap.Batch):
        def __init__(self, size: int, randomness: str) -> None:
            super().__init__(size, "same" if randomness == "error" else randomness)

    monkeypatch.setattr(vmap, "Batch", Lenient)
    found = messages("random_uniform", "vmap_random")
    assert found
    assert all("the draw does not raise RuntimeError" in message for message in found)
