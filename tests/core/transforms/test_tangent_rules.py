"""Tangent rules of operators, against differences and the vector-Jacobian product, at ties and zeros."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor
from candelabra.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from tests.core.transforms.comparing import close, difference, tensor

REDUCTIONS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim),
    "var": lambda x, dim: x.var(dim),
    "std": lambda x, dim: x.std(dim, correction=0),
    "norm": lambda x, dim: cd.linalg.vector_norm(x, 2, dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "prod": lambda x, dim: x.prod(dim),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [(0,), (1,), (2, 3)])
def test_value_and_tangent_of_one_pass_agree_with_differences(name: str, dim: Any, rng: np.random.Generator) -> None:
    """Reductions of rows, columns and several dims, of transposed tensors, and their derivatives in reverse mode."""
    if name == "prod":
        dim = dim[0]

    def f(x: Tensor) -> Tensor:
        return REDUCTIONS[name](x, dim)

    # Distinct numbers, further apart than the steps of the differences: no step changes which one is an extremum.
    x = cd.tensor(rng.permutation(360) / 40 - 4).reshape(5, 3, 4, 6).permute(0, 2, 1, 3)
    t = tensor(rng, 5, 4, 3, 6)
    value, along = jvp(f, (x,), (t,))
    assert close(value, f(x))
    assert close(along, difference(f, x, t), 1e-7)
    by_jvp = grad(lambda a: jvp(f, (a,), (t,))[1].sum())(x)
    by_vjp = jvp(grad(lambda a: f(a).sum()), (x,), (t,))[1]
    assert close(by_jvp, by_vjp)


def test_extrema_share_tangents_evenly_and_ignore_those_of_other_elements() -> None:
    """Ties have the mean of their tangents; an infinite tangent of another element does not matter; NaN propagates."""
    inf, nan = float("inf"), float("nan")
    x = cd.tensor([[2.0, 2.0, 1.0], [1.0, nan, 3.0], [inf, 1.0, inf]])
    t = cd.tensor([[1.0, 5.0, inf], [1.0, 2.0, 3.0], [4.0, inf, 6.0]])
    value, along = jvp(lambda a: a.amax(1), (x,), (t,))
    assert cd.equal(value[::2], cd.tensor([2.0, inf]))
    assert cd.equal(along[::2], cd.tensor([3.0, 5.0]))
    assert value[1].isnan()
    assert along[1].isnan()


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("size", [5, 200])
def test_scattered_extremes_share_tangents_among_ties(
    reduce: str, include_self: bool, size: int, rng: np.random.Generator
) -> None:
    """The tangents of input and source agree with the vector-Jacobian product, in small and in large tensors."""
    x, source = (cd.tensor(rng.integers(0, 4, (size, size)).astype(np.float64)) for _ in range(2))
    index = cd.tensor(rng.integers(0, size, (size, size)))
    t_x, t_source, g = (tensor(rng, size, size) for _ in range(3))

    def scattered(a: Tensor, b: Tensor) -> Tensor:
        return a.scatter_reduce(0, index, b, reduce, include_self=include_self)

    value, pull = vjp(scattered, x, source)
    assert cd.equal(jvp(scattered, (x, source), (t_x, t_source))[0], value)
    to_x, to_source = ((pulled * t).sum() for pulled, t in zip(pull(g), (t_x, t_source), strict=True))
    for f, primals, tangents, expected in (
        (lambda a: scattered(a, source), (x,), (t_x,), to_x),
        (lambda b: scattered(x, b), (source,), (t_source,), to_source),
        (scattered, (x, source), (t_x, t_source), to_x + to_source),
    ):
        assert close((jvp(f, primals, tangents)[1] * g).sum(), expected)


@pytest.mark.parametrize("dtype", [cd.float32, cd.float64], ids=str)
def test_mantissas_have_tangents_without_overflow(dtype: Any) -> None:
    """The smallest numbers are scaled by more than the largest power of two, the largest by less than the smallest."""
    info = cd.finfo(dtype)
    x, t = cd.tensor([info.tiny / 8, info.max, 3.0], dtype=dtype), cd.tensor([info.tiny, 1.0, 2.0], dtype=dtype)
    mantissa, along = jvp(lambda a: cd.frexp(a)[0], (x,), (t,))
    assert mantissa.tolist()[::2] == [0.5, 0.75]
    assert along.tolist()[::2] == [4.0, 0.5]
    assert 0 < along[1].item() < info.tiny


@pytest.mark.parametrize("count", [0, 1, 2])
def test_cumulative_products_have_exact_tangents_at_zeros(count: int, rng: np.random.Generator) -> None:
    """With one zero or two in a row, for small and for large tensors."""
    for rows, n in ((2, 5), (64, 100)):
        x, t = tensor(rng, rows, n), tensor(rng, rows, n)
        x[:, 1 : 1 + count] = 0
        along = jvp(lambda a: a.cumprod(1), (x,), (t,))[1]
        product, slope, expected = cd.ones(rows), cd.zeros(rows), []
        for i in range(n):
            product, slope = product * x[:, i], slope * x[:, i] + product * t[:, i]
            expected.append(slope)
        assert close(along, cd.stack(expected, 1))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", ((3,), (4, 5), (5, 3))), ("addmv", ((1,), (4, 5), (5,))), ("addr", ((5,), (4,), (5,))),
        ("baddbmm", ((1, 3), (2, 4, 5), (2, 5, 3))), ("addbmm", ((4, 1), (2, 4, 5), (2, 5, 3))),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0.5, 2.0), (0, 1)])
def test_added_products_have_the_tangents_of_any_operands(
    name: str, shapes: Any, beta: float, alpha: float, rng: np.random.Generator
) -> None:
    """For each subset of the operands, forward mode agrees with reverse mode; an operand is ignored if beta is 0."""
    operands = [tensor(rng, *shape) for shape in shapes]
    for count in (1, 2, 3):
        for chosen in combinations(range(3), count):

            def f(*values: Tensor, chosen: tuple[int, ...] = chosen) -> Tensor:
                given = list(operands)
                for i, value in zip(chosen, values, strict=True):
                    given[i] = value
                return getattr(cd, name)(*given, beta=beta, alpha=alpha)  # type: ignore[no-any-return]

            values = [operands[i] for i in chosen]
            places = tuple(range(count))
            for a, b in zip(jacfwd(f, places)(*values), jacrev(f, places)(*values), strict=True):
                assert close(a, b)


@pytest.mark.parametrize(("size", "stride", "offset"), [((3, 2), (1, 4), 1), ((5, 3), (2, 1), 0), ((2, 2), (0, 3), 7)])
@pytest.mark.parametrize("transposed", [False, True])
def test_tangents_of_strided_views_are_views(
    size: Any, stride: Any, offset: int, transposed: bool, rng: np.random.Generator
) -> None:
    """A tangent of any layout has the elements at the positions of the view; a contiguous one shares its memory."""
    x, t = tensor(rng, 3, 4), tensor(rng, 3, 4)

    def view(a: Tensor) -> Tensor:
        return a.as_strided(size, stride, offset)

    along = jvp(view, (x,), (t.T.contiguous().T if transposed else t,))[1]
    assert cd.equal(along, view(t.contiguous()))
    t.zero_()
    assert transposed or not along.any()
    assert cd.equal(jvp(lambda a: jvp(view, (x,), (a,))[1], (x,), (x,))[1], view(x))
    assert cd.equal(vmap(lambda a: jvp(view, (x,), (a,))[1])(cd.stack([x, -x])), cd.stack([view(x), -view(x)]))


def test_tangents_of_strided_views_are_zero_outside_of_the_input(rng: np.random.Generator) -> None:
    """The view of a part's memory also shows elements that do not depend on the part."""
    whole, t = tensor(rng, 4, 3), cd.ones(2, 3, dtype=cd.float64)
    for part in (whole[::2], whole[1::2]):
        along = jvp(lambda a: a.as_strided((9,), (1,)), (part,), (t,))[1]
        assert along.tolist() == [1, 1, 1, 0, 0, 0, 1, 1, 1]
