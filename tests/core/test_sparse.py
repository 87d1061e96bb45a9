"""Sparse tensors in coordinate format, compared with the same calls with dense tensors."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251 - sparse tensors of users are pickled
from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import numpy as np
import pytest

POSITIONS = [[0, 1, 1, 0], [2, 0, 2, 2]]


def created(rng: np.random.Generator, *dense: int, requires_grad: bool = False) -> Any:
    """Return a sparse tensor of shape (2, 3, *dense), in which one position occurs twice."""
    values = cd.tensor(rng.normal(size=(4, *dense)))
    return cd.sparse_coo_tensor(POSITIONS, values, (2, 3, *dense), requires_grad=requires_grad)


def normal(rng: np.random.Generator, *shape: int) -> Any:
    """Return a dense tensor."""
    return cd.tensor(rng.normal(size=shape))


def test_values_at_equal_positions_are_added() -> None:
    """``coalesce`` sorts the positions; ``to_dense`` does not need it."""
    x = cd.sparse_coo_tensor(POSITIONS, [3.0, 4.0, 5.0, 6.0], (2, 3))
    assert x.to_dense().tolist() == [[0, 0, 9], [4, 0, 5]]
    total = x.coalesce()
    assert total.is_coalesced()
    assert not x.is_coalesced()
    assert total.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert total.values().tolist() == [9, 4, 5]
    assert total.coalesce() is total
    assert (x._nnz(), total._nnz()) == (4, 3)


def test_attributes() -> None:
    """A sparse tensor is a Tensor with a layout; its shape may end with dense dims."""
    x = cd.sparse_coo_tensor([[1, 0]], cd.ones(2, 3, dtype=cd.float64))
    assert isinstance(x, cd.Tensor)
    assert x.is_sparse
    assert x.layout is cd.sparse_coo
    assert not cd.ones(1).is_sparse
    assert x.shape == (2, 3)
    assert x.dtype is cd.float64
    assert (x.sparse_dim(), x.dense_dim()) == (1, 1)
    assert str(x.device) == "cpu"
    assert x.numel() == 6
    assert len(x) == 2
    assert x._indices().tolist() == [[1, 0]]
    assert x._values().shape == (2, 3)
    assert not cd.sparse_coo_tensor((2, 2)).to_dense().any()
    assert cd.sparse_coo_tensor((2, 2))._nnz() == 0
    named = cd.sparse_coo_tensor(size=(2, 3), dtype=cd.float64, requires_grad=True)
    assert (tuple(named.shape), named.dtype, named.is_coalesced()) == ((2, 3), cd.float64, True)
    assert named._indices().shape == (2, 0)
    assert cd.sparse_coo_tensor([[0, 1]], 2.0, (3,)).to_dense().tolist() == [2, 2, 0]
    assert bool(cd.sparse_coo_tensor([[0]], [1.0], (1,)))
    assert x.to_sparse() is x
    assert x.data.layout is cd.sparse_coo
    assert x.to_dense(cd.float32).dtype is cd.float32


def test_printed_form() -> None:
    """It shows indices, values, size and layout, and whether the tensor is recorded."""
    x = cd.sparse_coo_tensor([[1]], [2.0], (3,))
    text = "tensor(indices=tensor([[1]]),\n       values=tensor([2.]),\n       size=(3,), nnz=1, "
    text += "layout=candelabra.sparse_coo"
    assert repr(x) == text + ")"
    assert repr(x.requires_grad_()) == text + ", requires_grad=True)"
    assert ", grad_fn=<" in repr(x * 2)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda x, d: -x,
    "number": lambda x, d: 2 * x / 4,
    "0-d tensor": lambda x, d: x * cd.tensor(3.0, dtype=cd.float64),
    "sparse + sparse": lambda x, d: x + x.t().t() * 2,
    "sparse - sparse": lambda x, d: x.sub(x * 3, alpha=2),
    "dense + sparse": lambda x, d: d + x,
    "sparse + dense": lambda x, d: x + d,
    "dense - sparse": lambda x, d: cd.sub(d, x, alpha=2),
    "sparse * dense": lambda x, d: x * d,
    "dense row * sparse": lambda x, d: d[0] * x,
    "sparse / dense": lambda x, d: x / (d.abs() + 1),
    "sparse * sparse": lambda x, d: x * (x + x),
    "pow": lambda x, d: x**2,
    "abs": lambda x, d: x.abs(),
    "sin": lambda x, d: cd.sin(x),
    "relu": lambda x, d: cd.nn.functional.relu(x),
    "transpose": lambda x, d: x.transpose(0, 1),
    "t": lambda x, d: x.t(),
    "T": lambda x, d: x.T,
    "permute": lambda x, d: x.permute(1, 0),
    "unsqueeze": lambda x, d: x.unsqueeze(1),
    "index": lambda x, d: x[1],
    "select": lambda x, d: x.select(1, 2),
    "index_select": lambda x, d: x.index_select(1, cd.tensor([2, 0, 2])),
    "cat": lambda x, d: cd.cat([x, x]),
    "cat columns": lambda x, d: cd.cat([x, x * 2], 1),
    "sum": lambda x, d: x.sum(),
    "sum of rows": lambda x, d: x.sum(1),
    "sum of columns": lambda x, d: x.sum(0, keepdim=True),
    "sum of both": lambda x, d: x.sum((0, 1)),
    "mm": lambda x, d: x.mm(d.t()),
    "@": lambda x, d: x @ d.t(),
    "mv": lambda x, d: cd.mv(x, d[0]),
    "vector @": lambda x, d: d[:, 0] @ x,
    "dense @": lambda x, d: d.t() @ x,
    "sparse @ sparse": lambda x, d: x @ x.t(),
    "spmm": lambda x, d: x @ d.t() if not x.is_sparse else cd.spmm(x, d.t()),
    "addmm": lambda x, d: cd.addmm(cd.ones(2, 2, dtype=cd.float64), x, d.t(), beta=2, alpha=3),
    "double": lambda x, d: x.float().double(),
    "clone": lambda x, d: x.clone(),
    "detach": lambda x, d: x.detach(),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_those_of_the_dense_tensor(name: str, rng: np.random.Generator) -> None:
    """Values, and gradients of the values and of dense operands, are those of the dense tensor."""
    function = OPERATORS[name]
    values, other = (normal(rng, 4) * 1024).round() / 1024, normal(rng, 2, 3)  # the sum of two is exact in float32
    results = []
    for is_sparse in (True, False):
        v, d = values.clone().requires_grad_(), other.clone().requires_grad_()
        x = cd.sparse_coo_tensor(POSITIONS, v, (2, 3))
        out = function(x if is_sparse else x.to_dense(), d)
        out = out.to_dense()
        if out.requires_grad:
            (out * cd.arange(1.0, out.numel() + 1, dtype=cd.float64).reshape(out.shape)).sum().backward()
        zero = cd.zeros(1)
        results.append([np.asarray(t.detach()) for t in (out, v.grad or zero if v.grad is None else v.grad)])
        results[-1].append(np.asarray(zero if d.grad is None else d.grad))
    for sparse, dense in zip(*results, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-12)


def test_batches_of_matrices(rng: np.random.Generator) -> None:
    """A sparse batch takes a dense batch."""
    dense = normal(rng, 2, 3, 4) * (normal(rng, 2, 3, 4) > 0)
    other = normal(rng, 2, 4, 5)
    np.testing.assert_allclose(np.asarray(dense.to_sparse() @ other), np.asarray(dense @ other), rtol=1e-12)


def test_dense_dims(rng: np.random.Generator) -> None:
    """Dims at the end may be dense: they follow the operators of the values."""
    x = created(rng, 2)
    dense = x.to_dense()
    assert x.sum(2).is_sparse
    assert x.permute(1, 0, 2).shape == (3, 2, 2)
    for ours, theirs in (
        (x.sum(2), dense.sum(2)), (x.sum((0, 1)), dense.sum((0, 1))), (x.transpose(0, 1), dense.transpose(0, 1)),
        (x.unsqueeze(3), dense.unsqueeze(3)), (x.select(2, 1), dense.select(2, 1)),
        (x.index_select(2, cd.tensor([1])), dense.index_select(2, cd.tensor([1]))),
        (dense.to_sparse(2), dense), (dense.to_sparse(), dense), (x[0], dense[0]),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(ours.to_dense()), np.asarray(theirs), rtol=1e-12)
    assert dense.to_sparse(2).dense_dim() == 1


def test_softmax_counts_stored_elements_only(rng: np.random.Generator) -> None:
    """Elements that are not stored are -inf, and stay unstored."""
    x = created(rng).coalesce()
    filled = cd.full((2, 3), -np.inf, dtype=cd.float64).index_put(tuple(x.indices()), x.values())
    for dim in (0, 1):
        expected = filled.softmax(dim)[tuple(x.indices())]
        np.testing.assert_allclose(cd.sparse.softmax(x, dim).values().tolist(), expected.tolist(), rtol=1e-12)
        log = cd.sparse.log_softmax(x, dim - 2, dtype=cd.float32)
        np.testing.assert_allclose(log.values().tolist(), expected.log().tolist(), rtol=1e-6, atol=1e-7)
    y = created(rng, 2)
    np.testing.assert_allclose(cd.sparse.softmax(y, 2).values().sum(1).tolist(), [1, 1, 1], rtol=1e-12)


def test_functions_of_the_module(rng: np.random.Generator) -> None:
    """``mm``, ``addmm``, ``sum`` and ``sampled_addmm`` take what PyTorch's take."""
    x, d = created(rng), normal(rng, 3, 4)
    dense = x.to_dense()
    np.testing.assert_allclose(np.asarray(cd.sparse.mm(x, d)), np.asarray(dense @ d))
    np.testing.assert_allclose(np.asarray(cd.sparse.mm(dense, d)), np.asarray(dense @ d))
    np.testing.assert_allclose(np.asarray(cd.sparse.addmm(d[:2], x, d, alpha=2)), np.asarray(d[:2] + 2 * (dense @ d)))
    np.testing.assert_allclose(float(cd.sparse.sum(x)), float(dense.sum()))
    np.testing.assert_allclose(np.asarray(cd.sparse.sum(x, 0).to_dense()), np.asarray(dense.sum(0)))
    left, right = normal(rng, 2, 5), normal(rng, 5, 3)
    sampled = cd.sparse.sampled_addmm(x, left, right, beta=2, alpha=3)
    expected = (2 * dense + 3 * (left @ right)) * (dense != 0)
    np.testing.assert_allclose(np.asarray(sampled.to_dense()), np.asarray(expected), rtol=1e-12)
    assert cd.sparse.FloatTensor(cd.tensor([[0]]), cd.tensor([1.5]), cd.Size([2])).to_dense().tolist() == [1.5, 0]
    assert cd.sparse.DoubleTensor(2, 3).shape == (2, 3)
    assert cd.sparse.LongTensor(cd.Size([2])).dtype is cd.int64
    with cd.sparse.check_sparse_tensor_invariants():
        assert cd.sparse.check_sparse_tensor_invariants.is_enabled()
    cd.sparse.check_sparse_tensor_invariants.disable()
    cd.sparse.check_sparse_tensor_invariants.enable()


def test_a_sparse_leaf_has_a_sparse_gradient(rng: np.random.Generator) -> None:
    """It has the indices of the leaf, and one value for each position."""
    x, d = created(rng, requires_grad=True), normal(rng, 3, 4).requires_grad_()
    assert x.requires_grad
    assert x.is_leaf
    assert x.grad_fn is None
    (x @ d).sin().sum().backward()
    dense = x.detach().to_dense().requires_grad_()
    (dense @ d.detach()).sin().sum().backward()
    assert x.grad.is_sparse
    np.testing.assert_allclose(x.grad.values().tolist(), dense.grad[tuple(x.indices())].tolist(), rtol=1e-12)
    x.grad = x.grad * 2
    assert not x.detach().requires_grad
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="the gradient of a sparse tensor must be a sparse tensor with the same ind"):
        x.grad = d
    del x.grad
    x.requires_grad = False
    assert not x.requires_grad
    y = (x.requires_grad_() * 2).detach_()
    assert not y.requires_grad
    y.data = x * 3
    assert y._version == 2


def test_writes_in_place(rng: np.random.Generator) -> None:
    """A dense tensor adds the values at their positions; a sparse one takes the elements of the result."""
    x, d = created(rng), normal(rng, 2, 3)
    expected = d + 3 * x.to_dense()
    out = d.add_(x, alpha=3)
    assert out is d
    assert not d.is_sparse
    np.testing.assert_allclose(np.asarray(d), np.asarray(expected), rtol=1e-12)
    d.sub_(x * 3)
    y = x.clone()
    assert y.mul_(2) is y
    assert y.add_(x) is y
    np.testing.assert_allclose(np.asarray(y.to_dense()), np.asarray(3 * x.to_dense()), rtol=1e-12)
    assert y.zero_()._nnz() == 0


def test_sparse_masks_select_elements_of_dense_tensors(rng: np.random.Generator) -> None:
    """``sparse_mask`` returns the elements at the positions of its argument."""
    x, d = created(rng).coalesce(), normal(rng, 2, 3)
    assert d.sparse_mask(x).values().tolist() == d[tuple(x.indices())].tolist()


def test_copies_of_programs(rng: np.random.Generator) -> None:
    """``deepcopy`` and pickle keep indices and values."""
    x = created(rng)
    pickled = pickle.loads(pickle.dumps(x))  # noqa: S301 - written here
    for other in (copy.deepcopy(x), pickled, x.to("cpu", copy=True)):
        assert other.is_sparse
        assert other._values().tolist() == x._values().tolist()


def test_booleans_are_added_by_or() -> None:
    """A position is True if one of its values is."""
    x = cd.sparse_coo_tensor([[0, 0, 2]], [True, False, False], (3,))
    assert x.to_dense().tolist() == [True, False, False]


def test_backward_functions_of_users_take_sparse_tensors(rng: np.random.Generator) -> None:
    """A custom Function may save a sparse tensor and multiply by it in ``backward``."""

    class Product(cd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, values: Any, other: Any) -> Any:
            matrix = cd.sparse_coo_tensor(POSITIONS, values, (2, 3))
            ctx.save_for_backward(matrix, other)
            return matrix @ other

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            matrix, other = ctx.saved_tensors
            return (gs[0] @ other.t())[tuple(matrix._indices())], matrix.t() @ gs[0]

    v, d = normal(rng, 4).requires_grad_(), normal(rng, 3, 2).requires_grad_()
    cd.autograd.gradcheck(Product.apply, (v, d))


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (cd.expm1, True), (cd.signbit, True), (F.leaky_relu, True), (F.silu, True), (F.tanhshrink, True),
        (cd.cos, False), (cd.sigmoid, False), (cd.logical_not, False), (F.softplus, False),
        (lambda x: F.threshold(x, -1.0, 9.0), True), (lambda x: F.threshold(x, 1.0, 9.0), False),
    ],
)  # fmt: skip
def test_functions_of_one_element_are_applied_to_the_values_if_they_keep_zeros(
    function: Callable[[Any], Any], kept: bool
) -> None:
    """Whether 0 becomes 0 is computed, also where an argument decides it. Otherwise the result would not be sparse."""
    x = cd.sparse_coo_tensor([[0, 2]], [-2.0, 0.5], (3,))
    if kept:
        out = function(x)
        assert out.is_sparse
        assert cd.equal(out.to_dense(), function(x.to_dense()))
    else:
        with pytest.raises(NotImplementedError, match="is not implemented for sparse tensors; call to_dense"):
            function(x)


X = cd.sparse_coo_tensor(POSITIONS, [3.0, 4.0, 5.0, 6.0], (2, 3))
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.sparse_coo_tensor(), TypeError, r"sparse_coo_tensor\(\) needs indices and values, or only a size"),
    (lambda: cd.sparse_coo_tensor([[0]], size=(2,)), TypeError, r"sparse_coo_tensor\(\) needs indices and values, or"),
    (lambda: cd.sparse_coo_tensor(size=(2, -1)), RuntimeError, r"sizes must not be negative, but got \[2, -1\]"),
    (lambda: X.exp(), NotImplementedError, r"exp\(\) is not implemented for sparse tensors; call to_dense\(\) first"),
    (lambda: X[:, 0], NotImplementedError, "a sparse tensor is only indexed by integers; use index_select"),
    (lambda: X.indices(), RuntimeError, "Cannot get indices on an uncoalesced tensor, please call .coalesce"),
    (lambda: X.values(), RuntimeError, "Cannot get values on an uncoalesced tensor, please call .coalesce"),
    (lambda: X.tolist(), TypeError, r"a sparse tensor has no elements in memory to read; use to_dense\(\)"),
    (lambda: X.stride(), RuntimeError, "Sparse tensors do not have strides"),
    (lambda: X.is_contiguous(), RuntimeError, "Sparse tensors do not have is_contiguous"),
    (lambda: X + cd.ones(2), RuntimeError, r"add\(\): sparse tensors need operands of one shape, got \[2, 3\] and"),
    (lambda: X + 1, RuntimeError, r"add\(\): sparse tensors need operands of one shape, got \[2, 3\] and 1"),
    (lambda: X * X.t(), RuntimeError, r"mul\(\): sparse tensors need operands of one shape"),
    (lambda: X + X.t(), RuntimeError, r"add\(\): sparse tensors need operands of one shape"),
    (lambda: cd.ones(3, 2).add_(X), RuntimeError, r"add_\(\): sparse tensors need operands of one shape"),
    (lambda: 1 / X, RuntimeError, "the divisor of a sparse tensor must be a number or a dense tensor"),
    (lambda: X**-1, RuntimeError, "the exponent of a sparse tensor must be a positive number, got -1"),
    (lambda: X.clone().mul_(2).add_(cd.ones(2, 3)), RuntimeError, "a dense tensor cannot be written into a sparse"),
    (lambda: X.clone().fill_(1), RuntimeError, r"fill_\(\): a sparse tensor can only be filled with 0, got 1"),
    (lambda: X @ cd.ones(2, 2), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x2\)"),
    (lambda: X @ cd.ones(3, 2).double(), RuntimeError, "expected mat1 and mat2 to have the same dtype"),
    (lambda: X @ cd.ones(2, 3, 2), RuntimeError, r"sparse operands of the shapes \[2, 3\] and \[2, 3, 2\] are not"),
    (lambda: cd.ones(2, 3).to_sparse(1) @ cd.ones(3), RuntimeError, r"batch of matrices without dense dims, got the"),
    (lambda: cd.ones(2, 3).to_sparse(1).t(), RuntimeError, "a sparse dim of a sparse tensor cannot change places"),
    (lambda: cd.cat([X, cd.ones(2, 3)]), RuntimeError, r"cat\(\): all tensors must be sparse, with equally many"),
    (
        lambda: cd.cat([cd.ones(2, 3).to_sparse(1)] * 2, 1),
        RuntimeError,
        r"cat\(\): sparse tensors are joined along sparse dims, got dim 1",
    ),
    (lambda: cd.ones(2, 3).to_sparse(0), RuntimeError, r"sparse_dim must be in \[1, 2\], but got 0"),
    (lambda: cd.ones(2).to_sparse(layout=cd.strided), RuntimeError, "layout candelabra.strided is not supported, the"),
    (lambda: cd.ones(2, 3).sparse_mask(cd.ones(2, 3)), TypeError, "argument 'mask' must be a sparse Tensor, not a de"),
    (lambda: cd.ones(3, 3).sparse_mask(X), RuntimeError, r"the mask has the shape \[2, 3\], expected \[3, 3\]"),
    (lambda: cd.sparse_coo_tensor([0], [1.0]), RuntimeError, r"indices must be sparse_dim x nnz, but got: \[1\]"),
    (lambda: cd.sparse_coo_tensor([[0]], [1.0, 2.0]), RuntimeError, "nnz from indices: 1, nnz from values: 2"),
    (
        lambda: cd.sparse_coo_tensor([[0]], [1.0], (2, 2)),
        RuntimeError,
        r"sparse_dim \(1\) \+ dense_dim \(0\), but got 2",
    ),
    (lambda: cd.sparse_coo_tensor([[-1]], [1.0]), RuntimeError, "found negative index -1"),
    (lambda: cd.sparse_coo_tensor([[2]], [1.0], (2,)), RuntimeError, "for dim 0, size is 2 but found index 2"),
    (lambda: cd.sparse_coo_tensor([[0]], [[1.0]], (1, 2)), RuntimeError, r"expected \[1, 2\], got \[1, 1\]"),
    (lambda: cd.sparse.softmax(cd.ones(2), 0), RuntimeError, r"sparse.softmax\(\): the input must be a sparse tensor"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    """Calls that sparse tensors do not support say what to do."""
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


def test_explain_names_the_layout() -> None:
    """A call with a sparse tensor is served before the steps of dense tensors."""
    sparse = cd.eye(2).to_sparse()
    explanation = cd.explain("mul", sparse, sparse)
    assert (explanation.route, explanation.steps[-1].number) == ("layout", 2)
    assert explanation.reason == "operators of the indices and values are dispatched"
