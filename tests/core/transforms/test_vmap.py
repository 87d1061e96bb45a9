"""``vmap``: the results are those of a loop over the examples, and wrong use raises functorch's errors."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap
from candelabra.func import grad

Pair = namedtuple("Pair", "first second")


def tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    """Return float64 numbers, so that the order of sums does not matter."""
    return cd.tensor(rng.standard_normal(shape))


def looped(f: Callable[..., Any], *args: Any, dims: tuple[Any, ...] | None = None) -> Tensor:
    """Return the results of ``f`` for each example, stacked."""
    dims = (0,) * len(args) if dims is None else dims
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    return cd.stack([
        f(*[a if d is None else a.select(d, i) for a, d in zip(args, dims, strict=True)]) for i in range(size)
    ])  # fmt: skip


def check(f: Callable[..., Any], *args: Any, dims: tuple[Any, ...] | None = None) -> None:
    """Compare ``vmap(f)`` with the loop, for these in_dims."""
    found = vmap(f, 0 if dims is None else dims)(*args)
    expected = looped(f, *args, dims=dims)
    assert found.dtype is expected.dtype
    assert found.shape == expected.shape
    assert cd.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


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


# -- wrong use --------------------------------------------------------------------------------------------------------
def _identity(x: Any) -> Any:
    return x


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no inputs": (lambda: vmap(_identity)(), ValueError, "got no inputs. Maybe you forgot to add inputs"),
    "in_dims of another type": (
        lambda: vmap(_identity, [0])(cd.ones(2)), ValueError, "expected `in_dims` to be int or a .potentially nested."
    ),
    "another structure": (
        lambda: vmap(_identity, (0, 0))(cd.ones(2)), ValueError, "in_dims is not compatible with the structure of"
    ),
    "a dim that is a float": (
        lambda: vmap(_identity, (1.5,))(cd.ones(2)), ValueError, "in_dim must be either an integer dimension or None"
    ),
    "an input that is no tensor": (
        lambda: vmap(_identity)(3), ValueError, "Got in_dim=0 for an input but the input is of type <class 'int'>"
    ),
    "a dim out of range": (
        lambda: vmap(_identity, 1)(cd.ones(2)), ValueError, "is a Tensor of dimensionality 1 so expected in_dim to"
    ),
    "nothing to map": (
        lambda: vmap(_identity, None)(cd.ones(2)), ValueError, "expected `in_dims` to be int or"
    ),
    "all None": (
        lambda: vmap(_identity, (None,))(cd.ones(2)), ValueError, "Expected at least one Tensor to vmap over"
    ),
    "different sizes": (
        lambda: vmap(lambda a, b: a)(cd.ones(2), cd.ones(3)), ValueError,
        r"Expected all tensors to have the same size in the mapped dimension, got sizes \[2, 3\]",
    ),
    "an output that is no tensor": (
        lambda: vmap(lambda a: 3)(cd.ones(2)), ValueError, "must only return Tensors, got type <class 'int'>"
    ),
    "out_dims None for a batched output": (
        lambda: vmap(_identity, out_dims=None)(cd.ones(2)), ValueError, "can not return a BatchedTensor when out_dim is"
    ),
    "out_dims of another structure": (
        lambda: vmap(_identity, out_dims=(0, 0))(cd.ones(2)), ValueError, "out_dims is not compatible with the"
    ),
    "out_dims of another type": (
        lambda: vmap(_identity, out_dims="x")(cd.ones(2)), ValueError, "`out_dims` must be an int, None or a python"
    ),
    "out_dims out of range": (
        lambda: vmap(_identity, out_dims=3)(cd.ones(2)), IndexError, "Dimension out of range"
    ),
    "randomness": (lambda: vmap(_identity, randomness="some"), RuntimeError, "Only allowed values for randomness are"),
    "chunk_size": (lambda: vmap(_identity, chunk_size=0), ValueError, "chunk_size should be None or greater than 0"),
    "item": (lambda: vmap(lambda a: cd.tensor(a.item()))(cd.ones(2)), RuntimeError, "looks like you're calling .item"),
    "control flow": (
        lambda: vmap(lambda a: a if a > 0 else -a)(cd.ones(2)), RuntimeError, "data-dependent control flow"
    ),
    "a result of dynamic shape": (
        lambda: vmap(lambda a: a.nonzero())(cd.ones(2, 3)), RuntimeError, "batching operators that can output dynamic"
    ),
    "a batched mask": (
        lambda: vmap(lambda a: a.expand(2, 3)[a > 0, 0])(cd.ones(2, 3)), (RuntimeError, IndexError), "mask"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name: str) -> None:
    """The errors are functorch's."""
    call, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        call()


def test_a_batched_value_cannot_be_written_into_a_shared_tensor() -> None:
    """functorch's error; the shared tensor does not change."""
    target = cd.zeros(3)
    with pytest.raises(RuntimeError, match=r"vmap: inplace arithmetic.*is not possible because there exists a Tensor"):
        vmap(lambda a: target.add_(a))(cd.ones(2, 3))
    assert target.tolist() == [0, 0, 0]
    vmap(lambda a: target.add_(1) + a)(cd.ones(2, 3))
    assert target.tolist() == [1, 1, 1]


def test_a_tensor_must_not_outlive_its_block() -> None:
    """The error says so, also inside a later call of vmap."""
    kept: list[Tensor] = []
    vmap(lambda a: kept.append(a) or a)(cd.ones(2, 3))
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        vmap(lambda a: a + kept[0])(cd.ones(2, 3))


def test_an_operator_without_a_rule_runs_in_a_loop_with_one_warning(rng: np.random.Generator) -> None:
    """The results are right; the warning names the operator once."""
    from candelabra._transforms import looping
    from candelabra._transforms.batching import with_frame
    from candelabra.library import OPERATORS

    op = OPERATORS["cumprod"]
    kernel = with_frame(op, looping.looped(op))
    from candelabra._transforms.batching import VMAP

    table = VMAP.at(1).kernels
    before = table.get("cumprod")
    looping.counts.pop("cumprod", None)
    dict.__setitem__(table, "cumprod", kernel)
    op.clear()
    try:
        x = tensor(rng, 5, 3)
        with pytest.warns(UserWarning, match="vmap has no batching rule for cumprod"):
            found = vmap(lambda a: a.cumprod(0))(x)
        vmap(lambda a: a.cumprod(0))(x)
        assert cd.allclose(found, x.cumprod(1))
        assert looping.counts["cumprod"] == 2
    finally:
        dict.__setitem__(table, "cumprod", before)
        op.clear()


def test_threads_use_the_same_depth(rng: np.random.Generator) -> None:
    """Each thread has levels of its own. A tensor of another thread's level is refused."""
    x = tensor(rng, 8, 3)
    inside, other = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
    results: dict[int, Tensor] = {}
    held: list[Tensor] = []
    errors: list[str] = []

    def run(number: int) -> None:
        def f(a: Tensor) -> Tensor:
            inside.wait()
            if number == 0:
                held.append(a)
            other.wait()
            if number == 1:
                with pytest.raises(RuntimeError, match="two calls of vmap were combined") as caught:
                    _ = a + held[0]
                errors.append(str(caught.value))
            inside.wait()
            return grad(lambda b: (b * (number + 1)).square().sum())(a)

        results[number] = vmap(f)(x)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cd.allclose(results[0], x * 2)
    assert cd.allclose(results[1], x * 8)
    assert len(errors) == 1


def test_a_thread_without_levels_creates_no_tensor_on_one() -> None:
    """A factory that follows a tensor of another thread's level says what is wrong."""
    errors: list[str] = []

    def f(a: Tensor) -> Tensor:
        def run() -> None:
            with pytest.raises(RuntimeError, match=r"a tensor of a function transform .level 1. was used in another"):
                cd.zeros_like(a)
            errors.append("refused")

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return a

    vmap(f)(cd.ones(2, 3))
    assert errors == ["refused"]


def test_a_tensor_of_an_inner_level_is_refused_outside_of_it() -> None:
    """A level cannot adopt a tensor of a level that has replaced it at its depth."""
    kept: list[Tensor] = []
    vmap(vmap(lambda a: kept.append(a) or a))(cd.ones(2, 3))
    with pytest.raises(RuntimeError, match="used after the function that vmap transforms had returned"):
        vmap(lambda a: a + kept[0])(cd.ones(2, 3))


def test_custom_functions_and_hooks(rng: np.random.Generator) -> None:
    """An autograd.Function runs on batched tensors, forward and backward; so do hooks of tensors."""

    class Cube(cd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    x = tensor(rng, 5, 3)
    assert cd.allclose(vmap(Cube.apply)(x), x**3)
    assert cd.allclose(vmap(grad(lambda a: Cube.apply(a).sum()))(x), 3 * x**2)

    def hooked(a: Tensor) -> Tensor:
        b = a * 1
        b.register_hook(lambda g: g * 2)
        return b.sum()

    assert cd.allclose(vmap(grad(hooked))(x), cd.full_like(x, 2))


def test_modes_do_not_leak(rng: np.random.Generator) -> None:
    """An exception inside leaves all levels, and restores the modes."""
    from candelabra._dispatch.levels import active_frames
    from candelabra.library import state

    def fail(a: Tensor) -> Tensor:
        with cd.no_grad():
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        vmap(vmap(fail))(tensor(rng, 2, 3))
    assert state.bits == 0
    assert active_frames() == []
    x = tensor(rng, 3).requires_grad_()
    (g,) = cd.autograd.grad(vmap(lambda a: a * a)(x).sum(), x)
    assert cd.allclose(g, 2 * x)


def test_two_transforms_of_two_threads_are_not_mixed() -> None:
    """Tensors of different transforms at one depth belong to different threads."""
    from candelabra.library import Frame, Transform

    class Nothing(Transform):
        name = "nothing"

        def copy_(self, destination: Any, source: Any) -> Any:
            return destination

    errors: list[str] = []

    def f(a: Tensor) -> Tensor:
        def run() -> None:
            with (
                Frame(Nothing()) as frame,
                pytest.raises(RuntimeError, match=r"a tensor of \w+ .level 1. was used in a function that \w+ trans"),
            ):
                _ = frame.adopt(cd.ones(3)) + a
            errors.append("refused")

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return a

    vmap(f)(cd.ones(2, 3))
    assert errors == ["refused"]
