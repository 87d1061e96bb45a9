"""Products of vectors and matrices: compared with NumPy, with beta and alpha, dtypes, errors and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS
from candelabra.autograd import gradcheck, gradgradcheck

DTYPES = ["float32", "float64", "complex64", "complex128", "int32", "int64", "uint8"]


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    """Return an array of small numbers."""
    actual = rng.integers(0, 5, shape)
    if "complex" in dtype:
        return (actual + 1j * rng.integers(0, 5, shape)).astype(dtype)
    return actual.astype(dtype)


def same(actual: Any, expected: Any) -> None:
    """Assert that dtype, shape and values are equal."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=2e-6, atol=1e-6)


def permuted(a: Any) -> Any:
    """Return the same array in another memory order, so that the tensor is not contiguous."""
    return cd.tensor(np.ascontiguousarray(a.T)).permute(*range(a.ndim)[::-1])


PRODUCTS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "mm": (((2, 3), (3, 4)), np.matmul),
    "bmm": (((2, 2, 3), (2, 3, 4)), np.matmul),
    "mv": (((2, 3), (3,)), np.matmul),
    "dot": (((3,), (3,)), np.matmul),
    "vdot": (((3,), (3,)), np.vdot),
    "outer": (((2,), (3,)), np.outer),
    "ger": (((2,), (3,)), np.outer),
    "inner": (((2, 3), (4, 3)), np.inner),
    "kron": (((2, 3), (2, 1, 2)), np.kron),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_numpys_in_every_dtype(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Values, dtypes and shapes agree, as function and method, for tensors in C order and in another order."""
    shapes, expected = PRODUCTS[name]
    arrays = [numbers(rng, dtype, *shape) for shape in shapes]
    wanted = np.asarray(expected(*arrays)).astype(dtype)
    first, second = (cd.tensor(a) for a in arrays)
    same(getattr(cd, name)(first, second), wanted)
    same(getattr(first, name)(second), wanted)
    same(getattr(cd, name)(*(permuted(a) for a in arrays)), wanted)
    out = cd.empty(0, dtype=first.dtype)
    assert getattr(cd, name)(first, second, out=out) is out
    same(out, wanted)


@pytest.mark.parametrize("name", ["mm", "mv", "dot", "outer"])
def test_half_types_are_multiplied_in_float32(name: str) -> None:
    """The sum of 1,000 ones is 1000 in bfloat16 too."""
    for dtype in (cd.float16, cd.bfloat16):
        shapes = {"mm": ((1, 1000), (1000, 1)), "mv": ((1, 1000), (1000,)), "outer": ((2,), (2,))}
        a, b = (cd.ones(s, dtype=dtype) for s in shapes.get(name, ((1000,), (1000,))))
        actual = getattr(cd, name)(a, b)
        assert actual.dtype is dtype
        assert actual.reshape(-1)[0].item() == (1 if name == "outer" else 1000)


def test_products_over_nothing_are_zeros() -> None:
    """An empty sum is 0; a product without rows is empty."""
    assert cd.mm(cd.zeros(2, 0), cd.zeros(0, 3)).tolist() == [[0.0] * 3] * 2
    assert cd.inner(cd.zeros(2, 0), cd.zeros(3, 0)).tolist() == [[0.0] * 3] * 2
    assert cd.bmm(cd.zeros(0, 2, 3), cd.zeros(0, 3, 4)).shape == (0, 2, 4)
    assert cd.dot(cd.zeros(0), cd.zeros(0)).item() == 0
    assert cd.kron(cd.zeros(0, 2), cd.zeros(3)).shape == (0, 6)


def test_inner_with_a_number_multiplies_elements() -> None:
    """With a 0-d tensor the inner product is the elementwise product."""
    assert cd.inner(cd.tensor([1.0, 2.0]), cd.tensor(3.0)).tolist() == [3.0, 6.0]


# -- beta and alpha ---------------------------------------------------------------------------------------------------
FUSED: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "addmm": (((2, 4), (2, 3), (3, 4)), np.matmul),
    "addmv": (((2,), (2, 3), (3,)), np.matmul),
    "addr": (((2, 3), (2,), (3,)), np.outer),
    "baddbmm": (((2, 2, 4), (2, 2, 3), (2, 3, 4)), np.matmul),
    "addbmm": (((2, 4), (3, 2, 3), (3, 3, 4)), lambda a, b: np.matmul(a, b).sum(0)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUSED)
def test_fused_products_add_in_proportion(name: str, dtype: str, rng: np.random.Generator) -> None:
    """``beta * input + alpha * product`` as function, method, in place, with out=, and with a row that broadcasts."""
    shapes, expected = FUSED[name]
    arrays = [numbers(rng, dtype, *shape) for shape in shapes]
    product = expected(*arrays[1:]).astype(dtype)
    t = [cd.tensor(a) for a in arrays]
    same(getattr(cd, name)(*t), (arrays[0] + product).astype(dtype))
    wanted = (2 * arrays[0] + 3 * product).astype(dtype)
    same(getattr(cd, name)(*t, beta=2, alpha=3), wanted)
    same(getattr(t[0], name)(*t[1:], beta=2, alpha=3), wanted)
    same(getattr(cd, name)(*t, beta=2, alpha=3, out=cd.empty(0, dtype=t[0].dtype)), wanted)
    row = arrays[0][..., :1]
    same(getattr(cd, name)(cd.tensor(row), *t[1:]), (row + product).astype(dtype))
    target = t[0].clone()
    assert getattr(target, name + "_")(*t[1:], beta=2, alpha=3) is target
    same(target, wanted)


@pytest.mark.parametrize("name", FUSED)
def test_at_beta_0_the_input_is_not_looked_at(name: str, rng: np.random.Generator) -> None:
    """NaN in the input does not propagate, and the input's gradient is zeros."""
    shapes, expected = FUSED[name]
    arrays = [numbers(rng, "float64", *shape) for shape in shapes]
    first = cd.full(shapes[0], float("nan"), dtype=cd.float64, requires_grad=True)
    actual = getattr(cd, name)(first, *(cd.tensor(a) for a in arrays[1:]), beta=0)
    same(actual, expected(*arrays[1:]))
    actual.sum().backward()
    assert first.grad.abs().sum().item() == 0


def test_factors_of_integers_are_integers() -> None:
    """A fraction is truncated, as in PyTorch's kernels."""
    x = cd.tensor([[2, 0], [0, 2]])
    assert cd.addmm(x, x, x, beta=1.7, alpha=0.6).tolist() == x.tolist()
    assert cd.addmm(x, x, x, beta=True, alpha=2.9).tolist() == [[10, 0], [0, 10]]


def test_addbmm_in_place_grows_a_tensor_that_broadcasts() -> None:
    """The in-place form changes the shape, as in PyTorch; no other in-place form does."""
    x = cd.ones(1)
    assert x.addbmm_(cd.ones(3, 2, 2), cd.ones(3, 2, 2), beta=2) is x
    assert x.tolist() == [[8.0, 8.0], [8.0, 8.0]]


def test_addbmm_in_place_grows_inside_a_graph() -> None:
    """The expanded tensor is part of the graph, and its gradient is propagated to the original."""
    a, left = cd.ones(2, requires_grad=True), cd.ones(3, 2, 2, requires_grad=True)
    x = a * 2
    assert x.addbmm_(left, cd.ones(3, 2, 2), beta=3) is x
    assert x.tolist() == [[12.0, 12.0], [12.0, 12.0]]
    x.sum().backward()
    assert a.grad.tolist() == [12.0, 12.0]
    assert left.grad.tolist() == [[[2.0, 2.0], [2.0, 2.0]]] * 3
    y = cd.ones(1)
    assert y.addbmm_(left, cd.ones(3, 2, 2)).requires_grad


def test_addr_of_bools_is_logic() -> None:
    """The result is a disjunction of conjunctions; beta and alpha are truth values."""
    a, v, w = cd.tensor([[True, False], [False, False]]), cd.tensor([True, False]), cd.tensor([False, True])
    assert cd.addr(a, v, w).tolist() == [[True, True], [False, False]]
    assert cd.addr(a, v, w, beta=0).tolist() == [[False, True], [False, False]]
    assert cd.addr(a, v, w, alpha=False).tolist() == a.tolist()
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        cd.addr(a, v, w, alpha=1.0)


def test_fused_products_have_gradients_of_both_orders_in_place_too(rng: np.random.Generator) -> None:
    """Complex factors, a broadcast input, and an in-place target are differentiable."""

    def leaf(*shape: int) -> Any:
        return cd.tensor(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), requires_grad=True)

    leaves = (leaf(4), leaf(2, 3), leaf(3, 4))
    call = lambda a, b, c: cd.addmm(a, b, c, beta=1j, alpha=2 - 1j)  # noqa: E731 - used twice, below
    assert gradcheck(call, leaves, fast_mode=True)
    assert gradgradcheck(call, leaves, fast_mode=True)
    assert gradcheck(lambda a, b, c: (a * 1).addmm_(b, c, alpha=2), (leaf(2, 4), *leaves[1:]), fast_mode=True)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.mm(cd.ones(2), cd.ones(2, 2)), RuntimeError, "self must be a matrix"),
    (lambda: cd.mm(cd.ones(2, 2), cd.ones(2)), RuntimeError, "mat2 must be a matrix"),
    (lambda: cd.mm(cd.ones(2, 3), cd.ones(2, 3)), RuntimeError, r"shapes cannot be multiplied \(2x3 and 2x3\)"),
    (lambda: cd.mm(cd.ones(2, 2), cd.ones(2, 2).double()), RuntimeError, "same dtype, but got: float != double"),
    (lambda: cd.mm(cd.ones(2, 2) > 0, cd.ones(2, 2) > 0), RuntimeError, "not implemented for 'Bool'"),
    (lambda: cd.bmm(cd.ones(2, 2), cd.ones(2, 2, 2)), RuntimeError, "batch1 must be a 3D tensor"),
    (lambda: cd.bmm(cd.ones(2, 2, 2), cd.ones(2, 2)), RuntimeError, "batch2 must be a 3D tensor"),
    (
        lambda: cd.bmm(cd.ones(2, 2, 3), cd.ones(2, 2, 3)),
        RuntimeError,
        r"first two dimensions of batch2 tensor to be: \[2, 3\] but got: \[2, 2\]",
    ),
    (lambda: cd.mv(cd.ones(2), cd.ones(2)), RuntimeError, r"vector \+ matrix @ vector expected, got 1, 1, 1"),
    (lambda: cd.mv(cd.ones(2, 3), cd.ones(2)), RuntimeError, r"size mismatch, got input \(2\), mat \(2x3\), vec \(2\)"),
    (lambda: cd.dot(cd.ones(2, 2), cd.ones(2)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors"),
    (lambda: cd.dot(cd.ones(2), cd.ones(3)), RuntimeError, "inconsistent tensor size"),
    (lambda: cd.vdot(cd.ones(2), cd.ones(2).double()), RuntimeError, "same dtype, but found Float and Double"),
    (lambda: cd.outer(cd.ones(2, 2), cd.ones(2)), RuntimeError, "Expected 1-D argument self, but got 2-D"),
    (lambda: cd.outer(cd.ones(2), cd.ones(2, 2)), RuntimeError, "Expected 1-D argument vec2, but got 2-D"),
    (lambda: cd.addr(cd.ones(2), cd.ones(2), cd.ones(2, 2)), RuntimeError, "Expected 1-D argument vec2, but got 2-D"),
    (lambda: cd.inner(cd.ones(2), cd.ones(3)), RuntimeError, "the last dimension must match on both input tensors"),
    (lambda: cd.addmm(cd.ones(3), cd.ones(2, 2), cd.ones(2, 2)), RuntimeError, r"expanded size of the tensor \(2\)"),
    (lambda: cd.addmm(cd.ones(1, 2, 2), cd.ones(2, 2), cd.ones(2, 2)), RuntimeError, "the number of sizes provided"),
    (lambda: cd.addmv(cd.ones(3), cd.ones(2, 2), cd.ones(2)), RuntimeError, r"got input \(3\), mat \(2x2\), vec \(2\)"),
    (
        lambda: cd.addmm(cd.ones(2, 2), cd.ones(2, 2), cd.ones(2, 2), beta=1j),
        RuntimeError,
        "argument beta must not be a complex number",
    ),
    (
        lambda: cd.addr(cd.ones(2).int(), cd.ones(2).int(), cd.ones(2).int(), alpha=0.5),
        RuntimeError,
        "argument alpha must not be a floating point number",
    ),
    (
        lambda: cd.addr(cd.ones(2), cd.ones(2), cd.ones(2), beta=True),
        RuntimeError,
        "Boolean beta only supported for Boolean results",
    ),
    (
        lambda: cd.ones(1, requires_grad=True).addbmm_(cd.ones(1, 2, 2), cd.ones(1, 2, 2)),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation",
    ),
    (
        lambda: cd.ones(2).addmm_(cd.ones(2, 2), cd.ones(2, 2)),
        RuntimeError,
        "doesn't match the broadcast shape",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_products_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("name", [*FUSED, "vdot", "kron", "cross_product"])
def test_what_a_device_computes_in_one_go_is_the_composition(name: str, dtype: str, rng: np.random.Generator) -> None:
    """The kernel and the record's body agree, so a device without such a kernel gives the same result."""
    record = OPERATORS[name]
    if name in FUSED:
        t = [cd.tensor(numbers(rng, dtype, *shape)) for shape in FUSED[name][0]]
        for beta, alpha in ((1, 1), (0, 2), (3, 1)):
            actual = record(*t, beta=beta, alpha=alpha)
            same(actual, record.body(*t, beta=beta, alpha=alpha).numpy())
        return
    shapes = {"vdot": ((3,), (3,)), "kron": ((2, 3), (2,)), "cross_product": ((1, 3), (2, 3))}[name]
    t = [cd.tensor(numbers(rng, dtype, *shape)) for shape in shapes]
    more = (1,) if name == "cross_product" else ()
    same(record(*t, *more), record.body(*t, *more).numpy())


M, V, T, Z = cd.ones(2, 3), cd.ones(3), cd.ones(4, 2, 3), cd.ones(2, 3, dtype=cd.complex64)
RULES: list[tuple[str, tuple[Any, ...]]] = [
    ("mm", (M, M.t())),
    ("bmm", (T, T.mT)),
    ("mv", (M, V)),
    ("dot", (V, V)),
    ("vdot", (V, V)),
    ("outer", (V, M[:, 0])),
    ("inner", (M, T)),
    ("inner", (V[0], M)),
    ("kron", (V, M)),
    ("tensordot", (M, T, ([0], [1]))),
    ("addmm", (V[:2], M, M.t(), 1, 1)),
    ("addmv", (V[:1], M, V, 1, 1)),
    ("addr", (M, M[:, 0], V, 1, 1)),
    ("baddbmm", (V[0], T, T.mT, 1, 1)),
    ("addbmm", (V[0], T, T.mT, 1, 1)),
    ("distances", (T, M, 1.0)),
    ("distances_backward", (cd.ones(4, 2, 2), T, M, cd.ones(4, 2, 2), 1.0)),
    ("euclidean_distances", (T, M)),
    ("pdist", (T[0], 1.0)),
    ("cosine_similarity", (T, M, 1, 1e-8)),
    ("cross_product", (T, M[None], 2)),
    ("fft_c2c", (Z, (0, 1), "ortho", True)),
    ("fft_r2c", (M, (0, 1), "ortho", True)),
    ("fft_r2c", (M, (0, 1), "ortho", False)),
    ("fft_c2r", (Z, (0, 1), "ortho", 5)),
]


@pytest.mark.parametrize(("name", "args"), RULES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(RULES)])
def test_rules_of_shape_say_what_comes_out(name: str, args: tuple[Any, ...]) -> None:
    """The shape rule agrees with the computed result."""
    record = OPERATORS[name]
    plain = [p.name for p in record.schema.parameters if p.keyword_only]
    given = args[: len(args) - len(plain)]
    actual = record(*given, **dict(zip(plain, args[len(given) :], strict=True)))
    assert tuple(record.rule(record, args)) == tuple(actual.shape)
