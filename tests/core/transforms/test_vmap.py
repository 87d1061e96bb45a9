"""``vmap``: the results are those of a loop over the examples."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap

from tests.core.transforms.comparing import check, tensor

Pair = namedtuple("Pair", "first second")


ONE: dict[str, Callable[..., Any]] = {
    "exp": lambda x: x.exp(),
    "scalar": lambda x: 2 * x - 1,
    "sum": lambda x: x.sum(),
    "sum of a dim": lambda x: x.sum(-1, keepdim=True),
    "sum of dims": lambda x: x.sum((0, 1)),
    "mean": lambda x: x.mean(1),
    "var": lambda x: x.var(0),
    "amax": lambda x: x.amax(0),
    "max": lambda x: x.max(1).values,
    "argmax": lambda x: x.argmax(),
    "argmax of a dim": lambda x: x.argmax(1, keepdim=True),
    "any": lambda x: (x > 0).any(),
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(0),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(0).values,
    "topk": lambda x: x.topk(2, 1).values,
    "prod": lambda x: x.prod(),
    "norm": lambda x: x.norm(),
    "transpose": lambda x: x.transpose(0, 1),
    "T": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.T.reshape(-1),
    "view": lambda x: x.view(3, 2, 2),
    "unsqueeze": lambda x: x.unsqueeze(0).unsqueeze(-1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "expand": lambda x: x[0].expand(2, -1),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "basic index": lambda x: x[1:, 0],
    "diagonal": lambda x: x.diagonal(),
    "trace": lambda x: x[:2, :2].trace(),
    "tril": lambda x: x.tril(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "chunk": lambda x: x.chunk(2, 0)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "pad": lambda x: cd.nn.functional.pad(x, (1, 1)),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(cd.float32).double(),
    "full_like": lambda x: cd.full_like(x, 3) + cd.zeros_like(x),
    "new_zeros": lambda x: x.new_zeros(2) + x[0, :2],
    "where": lambda x: cd.where(x > 0, x, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.5),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "matrix product": lambda x: x @ x.T,
    "einsum": lambda x: cd.einsum("ij,kj->ik", x, x),
    "scalar tensor": lambda x: (x[0, 0] * x[1, 1]).sum(0),
    "item selection": lambda x: x[0, 0].softmax(0),
    "cat": lambda x: cd.cat([x, x * 2], 1),
    "stack": lambda x: cd.stack([x, x * 2], -1),
    "repeat": lambda x: x.repeat(2, 1),
    "norm of rows": lambda x: cd.linalg.vector_norm(x, dim=1),
    "det": lambda x: cd.linalg.det(x @ x.T + cd.eye(3, dtype=cd.float64)),
    "inv": lambda x: cd.linalg.inv(x @ x.T + cd.eye(3, dtype=cd.float64)),
    "solve": lambda x: cd.linalg.solve(x @ x.T + cd.eye(3, dtype=cd.float64), x),
    "solve a vector": lambda x: cd.linalg.solve(x @ x.T + cd.eye(3, dtype=cd.float64), x[:, 0]),
    "cholesky": lambda x: cd.linalg.cholesky(x @ x.T + cd.eye(3, dtype=cd.float64)),
    "eigvalsh": lambda x: cd.linalg.eigvalsh(x @ x.T),
    "matrix_exp": lambda x: cd.linalg.matrix_exp(x @ x.T),
    "matrix_exp on two levels": lambda x: vmap(lambda s: cd.linalg.matrix_exp(x @ x.T * s))(x[0]),
    "svdvals": lambda x: cd.linalg.svdvals(x),
    "fft": lambda x: cd.fft.fft(x).abs(),
    "rfft2": lambda x: cd.fft.irfft2(cd.fft.rfft2(x), s=(3, 4)),
}


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_one_argument(name: str, dim: int, rng: np.random.Generator) -> None:
    """``vmap`` along any dim is the loop, for operators of every family."""
    x = tensor(rng, 5, 3, 4).movedim(0, dim).clone()
    check(ONE[name], x, dims=(dim,))


TWO: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "add of equal ranks": (lambda x, y: x + y, (3, 4), (3, 4)),
    "mul of different ranks": (lambda x, y: x * y, (3, 4), (4,)),
    "maximum with a scalar tensor": (lambda x, y: cd.maximum(x, y), (), (3, 4)),
    "matmul of matrices": (lambda x, y: x @ y, (3, 4), (4, 2)),
    "matmul of a matrix and a vector": (lambda x, y: x @ y, (3, 4), (4,)),
    "matmul of a vector and a matrix": (lambda x, y: x @ y, (4,), (4, 3)),
    "matmul of vectors": (lambda x, y: x @ y, (4,), (4,)),
    "matmul of batches": (lambda x, y: x @ y, (2, 1, 3, 4), (5, 4, 2)),
    "matmul of a batch and a vector": (lambda x, y: x @ y, (2, 3, 4), (4,)),
    "matmul of a vector and a batch": (lambda x, y: x @ y, (4,), (2, 4, 3)),
    "outer": (lambda x, y: cd.outer(x, y), (3,), (4,)),
    "bmm": (lambda x, y: cd.bmm(x, y), (2, 3, 4), (2, 4, 2)),
    "linear": (lambda x, y: cd.nn.functional.linear(x, y), (3, 4), (2, 4)),
    "linear of a vector": (lambda x, y: cd.nn.functional.linear(x, y), (4,), (2, 4)),
    "cat": (lambda x, y: cd.cat([x, y], 1), (3, 4), (3, 2)),
    "where": (lambda x, y: cd.where(x > 0, x, y), (3, 4), (4,)),
    "lerp": (lambda x, y: cd.lerp(x, y, 0.3), (3, 4), (3, 4)),
    "addmm": (lambda x, y: cd.addmm(y, x, y), (4, 4), (4, 4)),
    "cdist": (lambda x, y: cd.cdist(x, y), (3, 4), (2, 4)),
    "cross": (lambda x, y: cd.linalg.cross(x, y), (2, 3), (2, 3)),
    "kron": (lambda x, y: cd.kron(x, y), (2, 3), (2, 2)),
    "copy into a slice": (lambda x, y: _written(x, y), (3, 4), (4,)),
}


def _written(x: Tensor, y: Tensor) -> Tensor:
    out = (x + y).new_zeros(3, 4)
    out[1] = y
    out[:, 1:].add_(x[:, 1:])
    return out


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (-1, 0)])
def test_two_arguments(name: str, dims: tuple[Any, Any], rng: np.random.Generator) -> None:
    """Each argument may be batched along any dim, or be shared."""
    f, *shapes = TWO[name]
    args = []
    for shape, dim in zip(shapes, dims, strict=True):
        x = tensor(rng, *(shape if dim is None else (5, *shape)))
        args.append(x.movedim(0, -1).clone() if dim == -1 else x)
    check(f, *args, dims=dims)


INDEXED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "gather": lambda x, i: x.gather(1, i),
    "scatter": lambda x, i: x.scatter(1, i, x * 2),
    "scatter_add": lambda x, i: x.scatter_add(1, i, x),
    "take_along_dim": lambda x, i: cd.take_along_dim(x, i, 1),
    "index_select": lambda x, i: x.index_select(1, i[0]),
    "index_add": lambda x, i: x.index_add(1, i[0], x[:, :2]),
    "index": lambda x, i: x[i[:, 0]],
    "index of two dims": lambda x, i: x[i[:, 0], i[:, 1]],
    "index of the last dim": lambda x, i: x[:, i],
    "index with a gap": lambda x, i: x.unsqueeze(1)[i[0], :, i[1]],
    "index_put": lambda x, i: x.index_put((i[:, 0],), x[:, :1], accumulate=True),
    "index_put of the last dim": lambda x, i: x.index_put((None, i[0]), x[:, :2].exp()) if x.ndim else x,
    "embedding": lambda x, i: cd.nn.functional.embedding(i, x),
    "number": lambda x, i: x[i[0, 0]],
    "number and slice": lambda x, i: x[:, i[1, 0]] * x[i[0, 1], 1:2],
    "number as a target": lambda x, i: _put(x, i),
    "one_hot": lambda x, i: cd.nn.functional.one_hot(i, 4).double() + x[0],
}


def _put(x: Tensor, i: Tensor) -> Tensor:
    out = (x + i.sum()) * 1
    out[i[0, 0]] = x[1]
    out[i[1, 1], 0] = 7.0
    return out


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_index_tensors(name: str, dims: tuple[Any, Any], rng: np.random.Generator) -> None:
    """The tensor, its indices or both may be batched."""
    x = tensor(rng, *(5, 3, 4)[dims[0] is None :])
    i = cd.tensor(np.argsort(rng.random((5, 3, 3)[dims[1] is None :]), -1)[..., :2])
    f = INDEXED[name]
    if name == "one_hot":
        check(lambda x, i: f(x, i[0]), x, i, dims=dims)
    else:
        check(f, x, i, dims=dims)


def test_levels_are_nested(rng: np.random.Generator) -> None:
    """``vmap(vmap(f))`` is a loop in a loop; the two may share arguments in any way."""
    x, y = tensor(rng, 5, 3), tensor(rng, 4, 3)
    table = vmap(vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))(x, y)
    assert cd.allclose(table, x @ y.T)
    z = tensor(rng, 2, 3, 4)
    assert cd.allclose(vmap(vmap(vmap(lambda a: a * 2)))(z), z * 2)
    assert cd.allclose(vmap(vmap(lambda a, b: a @ b, (0, None)), (None, 0))(x, tensor_like(y, 3, 2)), _products(x, y))


def tensor_like(y: Tensor, *shape: int) -> Tensor:
    """Return matrices that repeat the rows of ``y``."""
    return y.unsqueeze(-1).expand(y.shape[0], *shape)


def _products(x: Tensor, y: Tensor) -> Tensor:
    return cd.stack([cd.stack([a @ m for a in x]) for m in tensor_like(y, 3, 2)])


def test_nested_containers_and_out_dims(rng: np.random.Generator) -> None:
    """A dim stands for all leaves of a container below it, in the arguments and in the results."""
    a, b, c = tensor(rng, 5, 2), tensor(rng, 2, 5), tensor(rng, 2)

    def f(first: dict[str, Any], second: Any, factor: float = 1.0) -> dict[str, Any]:
        return {"sum": first["a"] + first["b"] * factor, "pair": Pair(second, (first["a"].sum(), c))}

    found = vmap(f, ({"a": 0, "b": 1}, None), {"sum": 1, "pair": Pair(None, (0, 1))})({"a": a, "b": b}, c, factor=2.0)
    assert cd.allclose(found["sum"], (a + b.T * 2).T)
    assert found["pair"].first is c
    assert cd.allclose(found["pair"].second[0], a.sum(1))
    assert found["pair"].second[1].tolist() == c.unsqueeze(1).expand(2, 5).tolist()
    assert [t.shape for t in vmap(lambda t: (t, t * 2), out_dims=(0, -1))(a)] == [(5, 2), (2, 5)]


@pytest.mark.parametrize("chunk_size", [1, 2, 4, 9])
def test_chunks(chunk_size: int, rng: np.random.Generator) -> None:
    """The results do not depend on the number of examples that run together."""
    x, y = tensor(rng, 5, 3), tensor(rng, 3)
    f = vmap(lambda a, b: (a * b, a.sum()), (0, None), (1, 0), chunk_size=chunk_size)
    product, total = f(x, y)
    assert cd.allclose(product, (x * y).T)
    assert cd.allclose(total, x.sum(1))


def test_views_and_writes(rng: np.random.Generator) -> None:
    """A write to a batched tensor is seen by its views, and by the tensor outside; detach cuts the graphs outside."""
    x = tensor(rng, 5, 3)
    before = x.clone()

    def f(a: Tensor) -> Tensor:
        view = a[1:]
        a.mul_(2)
        view.add_(1)
        return view * 1

    assert cd.allclose(vmap(f)(x), before[:, 1:] * 2 + 1)
    assert cd.allclose(x[:, 1:], before[:, 1:] * 2 + 1)
    w = tensor(rng, 3).requires_grad_()
    out = vmap(lambda a: (a * w).detach() + (a * w).data + a * w)(x)
    (g,) = cd.autograd.grad(out.sum(), w)
    assert cd.allclose(g, x.sum(0))


def test_an_unbatched_tensor_of_the_level_becomes_batched(rng: np.random.Generator) -> None:
    """A composite may write a batched value into a result that it has computed from shared arguments."""
    w, b, x = tensor(rng, 4, 3), tensor(rng, 5, 4), tensor(rng, 2, 3)
    check(lambda b: cd.nn.functional.linear(x, w, b), b)
    check(lambda b: (b.new_zeros(4) * 0 + w[:, 0]).add_(b), b)


def test_the_device_is_the_real_one(rng: np.random.Generator) -> None:
    """``x.device`` names it, tensors that are created on it are shared, and ``to`` it returns the tensor."""
    x = tensor(rng, 5, 3)
    seen = []

    def f(a: Tensor) -> Tensor:
        seen.append((a.device, a.shape, a.to(a.device) is a))
        return a + cd.ones(3, device=a.device)

    assert cd.allclose(vmap(f)(x), x + 1)
    assert seen == [(x.device, (3,), True)]


def test_repr_shows_the_level() -> None:
    """A batched tensor can be printed."""
    seen = []
    vmap(lambda a: seen.append(repr(a)) or a)(cd.ones(2))
    assert seen == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 1.])\n)"]


# -- random numbers ---------------------------------------------------------------------------------------------------
def test_randomness() -> None:
    """Draws are an error, the same, or different for each example, with and without a batched operand."""
    x = cd.zeros(6, 50)

    def f(a: Tensor) -> Tensor:
        drawn = [cd.randn(50), cd.rand_like(a), cd.bernoulli(a + 0.5), cd.randperm(50), cd.randint(0, 1000, (50,))]
        return cd.stack([d.float() for d in [*drawn, cd.nn.functional.dropout(a + 1)]])

    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(f)(x)
    same = vmap(f, randomness="same")(x)
    assert same.shape == (6, 6, 50)
    assert (same == same[0]).all()
    different = vmap(f, randomness="different")(x)
    assert all(not cd.equal(different[i, kind], different[0, kind]) for i in range(1, 6) for kind in range(6))


def test_different_draws_are_those_of_one_large_draw() -> None:
    """They consume the counters of all examples from the generator of the real device."""
    cd.manual_seed(3)
    found = vmap(lambda a: cd.randn(4) + a, randomness="different")(cd.zeros(5, 4))
    after = cd.randn(2)
    cd.manual_seed(3)
    assert cd.equal(found, cd.randn(5, 4))
    assert cd.equal(after, cd.randn(2))
    cd.manual_seed(3)
    nested = vmap(vmap(lambda a: cd.randn(4) + a, randomness="different"), randomness="same")(cd.zeros(2, 5, 4))
    assert cd.equal(nested, found.expand(2, 5, 4))
