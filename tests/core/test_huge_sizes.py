"""Sizes and counts that no memory holds: an error at once, in place of a loop over them."""

from __future__ import annotations

import re
from collections.abc import Callable

import candelabra as cd
import pytest
from candelabra.nn import functional as F

X = cd.arange(4.0)
TOO_LARGE: dict[str, Callable[[], object]] = {
    "linspace": lambda: cd.linspace(0, 1, 2**40),
    "linspace of 2**62": lambda: cd.linspace(0, 1, 2**62),
    "arange": lambda: cd.arange(2**62),
    "eye": lambda: cd.eye(2**40),
    "rand": lambda: cd.rand(2**50),
    "randperm": lambda: cd.randperm(2**50),
    "window": lambda: cd.hann_window(2**50),
    "repeat": lambda: X.repeat(2**50),
    "replicate": lambda: F.pad(X[None], (0, 2**62), mode="replicate"),
    "vander": lambda: cd.linalg.vander(X, N=2**63),
    "vander of 2**50": lambda: cd.linalg.vander(X, N=2**50),
    "tril_indices": lambda: cd.tril_indices(2**50, 2**50),
    "combinations": lambda: cd.combinations(cd.arange(100.0), 50),
    "long combinations": lambda: cd.combinations(cd.arange(1.0), 2**40, with_replacement=True),
    "many combinations": lambda: cd.combinations(X, 2**40, with_replacement=True),
    "tensor_split": lambda: cd.tensor_split(X, 2**40),
    "adaptive_max_pool1d": lambda: F.adaptive_max_pool1d(X[None, None], 2**50),
    "one_hot": lambda: F.one_hot(cd.tensor([2**50])),
}
REASONS = (
    "cannot allocate|needs? more memory|has not enough memory|2\\*\\*48 or more combinations|"
    "elements are more than 65536, one step each"
)


@pytest.mark.parametrize("call", TOO_LARGE.values(), ids=TOO_LARGE)
def test_more_than_any_memory_is_out_of_memory(call: Callable[[], object]) -> None:
    """The error is PyTorch's class for it, and no MemoryError or ValueError of an array library."""
    with pytest.raises(cd.OutOfMemoryError, match=REASONS):
        call()


@pytest.mark.parametrize("degree", [2**62, 1e18, cd.tensor([1.0, 1e18]), cd.tensor(2**62), float("inf")])
def test_the_degree_of_a_polynomial_is_bounded(degree: cd.Tensor | float) -> None:
    """Each degree takes a step."""
    with pytest.raises(RuntimeError, match=re.escape("the degree of a polynomial must be at most 1048576, one step")):
        cd.special.legendre_polynomial_p(X / 4, degree)


def test_what_has_no_elements_has_any_size() -> None:
    """No combination of four elements has more of them."""
    assert cd.combinations(X, 2**40).shape == (0, 2**40)
    assert cd.combinations(X, 4).tolist() == [[0, 1, 2, 3]]
    assert cd.combinations(X, 3).shape == (4, 3)


@pytest.mark.parametrize("offset", range(-5, 6))
def test_the_number_of_elements_of_a_triangle(offset: int) -> None:
    """The formula agrees with the elements."""
    for rows, columns in ((0, 3), (3, 0), (4, 2), (2, 5), (3, 3)):
        found = cd.tril_indices(rows, columns, offset)
        assert found.shape[1] == int(cd.ones(rows, columns).tril(offset).sum().item())
        assert cd.tril_indices(rows, columns, offset, device="meta").shape == found.shape
