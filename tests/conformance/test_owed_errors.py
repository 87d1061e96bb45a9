"""The errors that the suite permits for sums of products and eigenvalues: correct algorithms pass, worse ones fail."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.model import FAILED, PASSED
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import on_host
from candelabra_conformance.suite import plan, run_case

Array = np.ndarray[Any, Any]
PRODUCTS = ("matmul/value/float32/contiguous", "matmul/value/float32/large", "dot/sizes/*")


def verdicts(operator: str, function: Callable[..., Any], *patterns: str) -> dict[str, str]:
    """Return the verdicts of cases on a device whose kernel is ``function(right, *arguments)``, on arrays."""
    mirror = Mirror("owing")
    mirror.table[operator] = on_host(mirror, OPERATORS[operator], mirror.table[operator], function)
    with installed(mirror) as context:
        cases = plan(context, patterns=patterns)
        assert cases
        return {case.id: run_case(context, case, explained=False).verdict for case in cases}


def multiplied(right: Any, x: Array, y: Array, total: Callable[[Array], Array]) -> Any:
    """Return vector products by ``total``, a function of the products along the last dim; others are right."""
    if x.dtype != np.float32 or x.ndim != 1 or y.ndim != 1 or not x.size:
        return right(x, y)
    return np.asarray(total(x * y), np.float32)


def sequential(products: Array) -> Any:
    """Add one product after the other in float32."""
    return np.add.accumulate(products)[-1]


def test_a_sequential_sum_of_products_passes() -> None:
    """A loop that rounds after each of 50,001 additions in float32 is a correct product."""
    found = verdicts("matmul", lambda right, x, y: multiplied(right, x, y, sequential), *PRODUCTS)
    assert set(found.values()) == {PASSED}


def without_the_tail(products: Array) -> Any:
    """Add only full blocks of 1,024 products."""
    return products[: max(len(products) - len(products) % 1024, 1)].sum(dtype=np.float64)


def in_half_the_digits(products: Array) -> Any:
    """Add products of 12 bits."""
    mantissa, exponent = np.frexp(products)
    return np.ldexp(np.floor(mantissa * 4096) / 4096, exponent).sum(dtype=np.float64)


@pytest.mark.parametrize("total", [without_the_tail, in_half_the_digits])
def test_a_worse_sum_of_products_fails(total: Callable[[Array], Array]) -> None:
    """A product that loses terms or digits fails: in long sums if it loses the tail, in short ones if digits."""
    found = verdicts("matmul", lambda right, x, y: multiplied(right, x, y, total), *PRODUCTS)
    assert found["dot/sizes/float32"] == FAILED or found["matmul/value/float32/contiguous"] == FAILED


@pytest.mark.parametrize(("steps", "verdict"), [(3, PASSED), (1000, FAILED)])
def test_eigenvalues_of_a_near_matrix_pass(steps: int, verdict: str) -> None:
    """The exact eigenvalues of a matrix 3 eps away pass, also if one of them is 0; those of one 1,000 eps away fail."""

    def near(right: Any, x: Array, uplo: str) -> Any:
        if x.dtype != np.float32 or not x.size:
            return right(x, uplo)
        whole = np.tril(x) if uplo == "L" else np.triu(x).swapaxes(-1, -2)
        whole = (whole + np.tril(whole, -1).swapaxes(-1, -2)).astype(np.float64)
        signs = np.where(np.add.outer(np.arange(x.shape[-1]), np.arange(x.shape[-1])) % 2, 1.0, -1.0)
        return np.linalg.eigvalsh(whole * (1 + steps * 2.0**-23 * signs)).astype(np.float32)

    found = verdicts("linalg_eigvalsh", near, "linalg_eigvalsh/value/float32/*", "linalg_eigvalsh/special/float32/*")
    assert len(found) >= 4
    assert set(found.values()) == {PASSED} if verdict == PASSED else FAILED in found.values()


@pytest.mark.parametrize(
    ("operator", "steps", "words"),
    [
        ("div", 1, r" \([\d.]+ ULP away, the nearest number is required\)"),
        ("exp", 1000, r" \([\de.+]+ ULP away, [\d.]+ allowed\)"),
    ],
)
def test_an_operator_that_owes_the_nearest_number_has_no_tolerance(operator: str, steps: int, words: str) -> None:
    """The message of a wrong quotient names no tolerance, that of an exponential does."""

    def far(right: Any, *args: Any) -> Any:
        values = np.asarray(right(*args))
        return (values.view(np.int32) + np.int32(steps)).view(np.float32) if values.dtype == np.float32 else values

    mirror = Mirror("owing")
    mirror.table[operator] = on_host(mirror, OPERATORS[operator], mirror.table[operator], far)
    with installed(mirror) as context:
        (case,) = plan(context, patterns=[f"{operator}/value/float32/contiguous"])
        assert re.search(words, run_case(context, case, explained=False).message)
