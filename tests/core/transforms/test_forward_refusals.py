"""Errors of ``func.jvp`` and ``jacfwd``, and of operators that compute value and tangent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra.func import jacfwd, jvp
from candelabra.library import record

X = cd.ones(3)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "primals": (lambda: jvp(cd.sin, X, X), "Expected primals to be a tuple"),
    "no primals": (lambda: jvp(lambda: X, (), ()), "Expected primals to contain at least one Tensor."),
    "structure": (
        lambda: jvp(cd.sin, (X,), (X, X)),
        "Expected primals and tangents to have the same python structure",
    ),
    "shape": (
        lambda: jvp(cd.sin, (X,), (cd.ones(4),)),
        r"Expected tangent to have the same shape as primal at flattened position 0: primal has shape \[3\], tangent "
        r"has shape \[4\]",
    ),
    "dtype": (
        lambda: jvp(cd.sin, (X,), (X.double(),)),
        "Expected tangent to have the same dtype as primal at flattened position 0: primal has dtype",
    ),
    "number": (lambda: jvp(cd.sin, (1.0,), (1.0,)), "Expected primals to only contain Tensors, got <class 'float'>"),
    "integers": (
        lambda: jvp(cd.sin, (X.long(),), (X.long(),)),
        "Expected primals to have a floating or complex dtype, as only those have derivatives, got candelabra.int64",
    ),
    "output": (
        lambda: jvp(lambda x: 3, (X,), (X,)),
        r"expected f\(\*primals\) to return only tensors, got unsupported",
    ),
    "aux": (lambda: jvp(cd.sin, (X,), (X,), has_aux=True), r"output of function f should be a tuple: \(output, aux\)"),
    "strict": (
        lambda: jvp(lambda x: cd.ones(2), (X,), (X,), strict=True),
        "The output of f is independent of the inputs",
    ),
    "complex Jacobian": (lambda: jacfwd(cd.sin)(X + 0j), "jacfwd: Expected all inputs to be real but received complex"),
    "argnums": (lambda: jacfwd(cd.sin, 1)(X), "Got argnum=1, but only 1 positional inputs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    """Errors name the function, what it expects, and what it got."""
    call, text = MISTAKES[name]
    with pytest.raises(RuntimeError, match=text):
        call()
    assert (X * 2).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("extremum_along", ((1,), True, False)), ("var_mean_along", (None, 1, False)), ("norm_along", (None, False)),
        ("logsumexp_along", ((1,), False)), ("cumprod_along", (1,)), ("prod_along", ((1,), False)),
        ("linalg_det_along", ()), ("linalg_slogdet_along", ()),
    ],
)  # fmt: skip
def test_tangents_of_another_shape_are_refused(operator: str, arguments: tuple[Any, ...]) -> None:
    """The operators that compute value and tangent name the shapes."""
    with pytest.raises(RuntimeError, match=r"the tangent must have the shape of the input, \[2, 3\], got \[3\]"):
        record(operator).canonical(cd.ones(3), cd.ones(2, 3), *arguments)


@pytest.mark.parametrize("name", ["input", "src"])
def test_tangents_of_scattered_extremes_have_the_shapes_of_their_primals(name: str) -> None:
    """The error names the shapes of the tangent and its primal."""
    shapes = {"input": (2, 2), "src": (3, 3)}[name]
    with pytest.raises(RuntimeError, match=r"scatter_extreme: the tangent must have the shape of the input, \[(2|3)\]"):
        record("scatter_extreme_along").canonical(
            cd.ones(shapes[0]), cd.ones(shapes[1]), cd.ones(3), 0, cd.tensor([0, 1]), cd.ones(2), "amax", True
        )
