"""einsum, tensordot, kron and chains of matrices: compared with NumPy, every notation, every error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators.linalg.products.chains import chain_order
from candelabra.autograd import gradcheck, gradgradcheck


def array(rng: np.random.Generator, *shape: int) -> Any:
    """Return normal numbers."""
    return np.asarray(rng.standard_normal(shape))


def close(actual: Any, expected: Any) -> None:
    """Assert that shape and values are equal."""
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


EQUATIONS = [
    ("i->", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(2,), (3,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij , jk -> ki", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 4)]),
    ("bij,bjk->ik", [(2, 2, 3), (2, 3, 4)]),
    ("...ij,...jk", [(2, 1, 2, 3), (4, 3, 2)]),
    ("...i->...", [(2, 3, 4)]),
    ("i...,j...->ij...", [(2, 4), (3, 4)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("bn,anm,bm->ba", [(2, 3), (5, 3, 4), (2, 4)]),
    ("ab,bc,cd,de->ae", [(2, 3), (3, 4), (4, 2), (2, 3)]),
    ("Ab,bA->", [(2, 3), (3, 2)]),
    (",ij->ij", [(), (2, 3)]),
    ("ij,j", [(2, 0), (0,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[e for e, _ in EQUATIONS])
def test_einsum_is_numpys(equation: str, shapes: list[tuple[int, ...]], rng: np.random.Generator) -> None:
    """Operands may be separate arguments or a list, real or complex."""
    arrays = [array(rng, *s) for s in shapes]
    expected = np.einsum(equation, *arrays)
    tensors = [cd.tensor(a) for a in arrays]
    close(cd.einsum(equation, *tensors), expected)
    close(cd.einsum(equation, tensors), expected)
    wide = [a + 1j * array(rng, *a.shape) for a in arrays]
    close(cd.einsum(equation, *(cd.tensor(a) for a in wide)), np.einsum(equation, *wide))


def test_einsum_takes_labels_as_integers(rng: np.random.Generator) -> None:
    """Operands and labels alternate, with Ellipsis allowed and the output's labels last."""
    a, b = array(rng, 2, 3, 4), array(rng, 4, 5)
    x, y = cd.tensor(a), cd.tensor(b)
    close(cd.einsum(x, [..., 0], y, [0, 1], [1, ...]), np.einsum("...i,ij->j...", a, b))
    close(cd.einsum(x, [3, 1, 0], y, [0, 2]), np.einsum("dba,ac", a, b))


def test_einsum_broadcasts_sizes_of_1(rng: np.random.Generator) -> None:
    """A dim of size 1 is expanded to the other operand's size."""
    a, b = array(rng, 2, 1), array(rng, 3, 4)
    close(cd.einsum("ij,jk->ik", cd.tensor(a), cd.tensor(b)), a * b.sum(0))
    close(cd.einsum("ij,ij->ij", cd.tensor(a), cd.tensor(array(rng, 2, 3) * 0 + 1)), np.repeat(a, 3, 1))


def test_einsum_of_integers_multiplies_in_their_dtype() -> None:
    """Products of int32 are int32; plain sums are int64, as for ``sum``."""
    x = cd.tensor([[1, 2], [3, 4]], dtype=cd.int32)
    assert cd.einsum("ij->j", x).dtype is cd.int64
    assert cd.einsum("ij,jk", x, x).tolist() == [[7, 10], [15, 22]]


def test_einsum_of_one_operand_may_be_a_view() -> None:
    """A diagonal or a permutation shares memory, but the result is never the operand itself."""
    x = cd.zeros(2, 2)
    cd.einsum("ii->i", x).fill_(1)
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert cd.einsum("ij->ij", x) is not x


def test_einsum_has_gradients_of_both_orders(rng: np.random.Generator) -> None:
    """Diagonals, ellipses, broadcasting and three operands are differentiable."""

    def leaf(*shape: int) -> Any:
        return cd.tensor(array(rng, *shape), requires_grad=True)

    for equation, shapes in (("iij,...j->...i", [(2, 2, 3), (2, 3)]), ("ab,bc,ac->a", [(2, 3), (1, 2), (2, 2)])):
        leaves = [leaf(*s) for s in shapes]
        call = lambda *t, e=equation: cd.einsum(e, *t)  # noqa: E731 - used twice, below
        assert gradcheck(call, leaves, fast_mode=True)
        assert gradgradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize(
    ("a", "b", "dims"),
    [
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (4,), 0),
        ((2, 3, 4), (4, 5, 3), ([1, 2], [2, 0])),
        ((2, 3, 4), (3, 4, 2), ([-3, 1, 2], [2, 0, 1])),
        ((2, 0), (0, 3), 1),
    ],
)
def test_tensordot_is_numpys(a: tuple[int, ...], b: tuple[int, ...], dims: Any, rng: np.random.Generator) -> None:
    """The dims are a number or two lists, which may be a tensor."""
    x, y = array(rng, *a), array(rng, *b)
    close(cd.tensordot(cd.tensor(x), cd.tensor(y), dims), np.tensordot(x, y, dims))
    if not isinstance(dims, int):
        close(cd.tensordot(cd.tensor(x), cd.tensor(y), dims=cd.tensor(dims)), np.tensordot(x, y, dims))


def test_tensordot_sums_what_broadcasts(rng: np.random.Generator) -> None:
    """A contracted dim of size 1 is expanded to the other's size."""
    x, y = array(rng, 2, 1), array(rng, 3, 4)
    close(cd.tensordot(cd.tensor(x), cd.tensor(y), 1), x * y.sum(0))
    close(cd.tensordot(cd.tensor(y.T), cd.tensor(x.T), 1), y.sum(0)[:, None] * x.T)


def test_tensordot_sums_what_broadcasts_of_every_integer_dtype() -> None:
    """uint64 is supported, although its sums are int64."""
    a, b = cd.tensor([[2], [3]]).to(cd.uint64), cd.tensor([[1, 2], [3, 4]]).to(cd.uint64)
    actual = cd.tensordot(a, b, ([1], [0]))
    assert actual.dtype is cd.uint64
    assert actual.tolist() == [[8, 12], [12, 18]]


def test_kron_and_tensordot_have_gradients(rng: np.random.Generator) -> None:
    """Sizes and ranks may differ."""
    leaves = [cd.tensor(array(rng, *s), requires_grad=True) for s in ((2, 3), (2,))]
    assert gradcheck(cd.kron, leaves, fast_mode=True)
    assert gradcheck(lambda a, b: cd.tensordot(a, b, ([0], [0])), leaves, fast_mode=True)


def test_chains_are_multiplied_in_the_cheapest_order(rng: np.random.Generator) -> None:
    """The textbook example of dynamic programming: 30x35, 35x15, 15x5, 5x10, 10x20, 20x25 is ((A(BC))((DE)F))."""
    split = chain_order([30, 35, 15, 5, 10, 20, 25])
    assert (split[0, 5], split[0, 2], split[3, 5]) == (2, 0, 4)
    matrices = [array(rng, 2, 3), array(rng, 3, 4), array(rng, 4, 1), array(rng, 1, 5)]
    tensors = [cd.tensor(m) for m in matrices]
    close(cd.chain_matmul(*tensors), np.linalg.multi_dot(matrices))
    close(cd.chain_matmul(tensors), np.linalg.multi_dot(matrices))
    assert cd.chain_matmul(tensors[0]).tolist() == tensors[0].tolist()
    out = cd.empty(0, dtype=cd.float64)
    assert cd.chain_matmul(*tensors, out=out) is out


A, B = cd.ones(2, 3), cd.ones(3, 4)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.einsum(), ValueError, "must specify the equation string and at least one operand"),
    (lambda: cd.einsum("ij"), ValueError, "must specify the equation string and at least one operand"),
    (lambda: cd.einsum(A), ValueError, "at least one operand and its subscripts list"),
    (lambda: cd.einsum("i", 3), TypeError, "expected Tensor operands, but got int"),
    (lambda: cd.einsum(A, 3), TypeError, "expected a list of integers and Ellipsis for operand 0, got int"),
    (lambda: cd.einsum("ij", A, B), RuntimeError, "more operands were provided than specified in the equation"),
    (lambda: cd.einsum("ij,jk", A), RuntimeError, "fewer operands were provided than specified in the equation"),
    (lambda: cd.einsum("i.j", A), RuntimeError, "that is not part of any ellipsis"),
    (lambda: cd.einsum("...i...", A), RuntimeError, "for which an ellipsis was already found"),
    (lambda: cd.einsum("i1", A), RuntimeError, "subscripts must be in .a-zA-Z., but found '1'"),
    (lambda: cd.einsum("ijk", A), RuntimeError, r"subscripts in the equation \(3\) does not match the number of dim"),
    (lambda: cd.einsum("i", A), RuntimeError, "for operand 0, and no ellipsis was given"),
    (lambda: cd.einsum("ii", A), RuntimeError, "i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    (lambda: cd.einsum("ij,ij", A, B), RuntimeError, "which does not broadcast with previously seen size 2"),
    (lambda: cd.einsum("ij->ii", A), RuntimeError, "output subscript i appears more than once in the output"),
    (lambda: cd.einsum("ij->k", A), RuntimeError, "subscript k does not appear in the equation for any input"),
    (lambda: cd.einsum(A, [0, 1], [7]), RuntimeError, "output subscript 7 does not appear"),
    (lambda: cd.einsum(A, [0, 52]), RuntimeError, r"must be in the range \[0, 52\)"),
    (lambda: cd.einsum(A, [..., ...]), RuntimeError, "found more than one ellipsis for operand 0"),
    (lambda: cd.einsum("ij,jk", A, B.double()), RuntimeError, "same dtype, but got: float != double"),
    (lambda: cd.tensordot(A, B, -1), RuntimeError, "tensordot expects dims >= 0, but got dims=-1"),
    (lambda: cd.tensordot(A, B, 3), RuntimeError, "tensordot expects dims <= the number of dims of both tensors"),
    (lambda: cd.tensordot(A, B, ([1],)), RuntimeError, "an int or two lists of ints, but got 1 entries"),
    (lambda: cd.tensordot(A, B, ([1], [0, 1])), RuntimeError, "both dimension lists should have same length"),
    (lambda: cd.tensordot(A, B, ([1, 1], [0, 1])), RuntimeError, "dim 1 appears multiple times in the list of dims"),
    (lambda: cd.tensordot(A, B, ([0], [0])), RuntimeError, "has size 2 in dim 0 and second has size 3 in dim 0"),
    (lambda: cd.tensordot(A, B.double(), 1), RuntimeError, "same dtype, but got: float != double"),
    (lambda: cd.chain_matmul(), RuntimeError, "Expected one or more matrices"),
    (lambda: cd.chain_matmul(A, 3), TypeError, "argument 'matrices' must be Tensors, but got int"),
    (lambda: cd.chain_matmul(A, cd.ones(3)), RuntimeError, "Tensor dimension is 1, expected 2 instead"),
    (lambda: cd.chain_matmul(A, A), RuntimeError, "shapes cannot be multiplied"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_contractions_say_what_is_wrong(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Each error has PyTorch's class, and names the operand and the subscript."""
    with pytest.raises(error, match=text):
        call()
